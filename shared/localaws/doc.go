// Package localaws runs the whole application on this machine, for development
// and for tests: no cloud account and no Docker.
//
// One emulator process (MiniStack, the "engine") speaks DynamoDB, SQS, Lambda,
// HTTP API, Secrets Manager and CloudFormation. The real template.yaml is
// built and deployed to it by the real SAM CLI, so what is tried here is what
// ships. A Proxy stands between the engine and everyone who calls it, the
// functions included: it counts calls and can make them fail.
//
//	test, CLI ──► API front ──► engine ─── starts ──► function processes
//	                              ▲                          │
//	                              └───────── Proxy ◄─────────┘   ◄── AWS clients of tests and CLI
//
// Metrics and alarms work as on AWS, at a pace of Options.AlarmMinute: what the
// functions write in the Embedded Metric Format, what Lambda counts and what
// SQS reports about queues can be read from CloudWatch, and each alarm that
// looks at those rings by its own metric, through the alarm topic. Nobody
// reports the API's status codes, a stream's age or a mapping's failed events:
// alarms on those stay silent here.
//
// Start brings up all of it. Update deploys once more onto what runs. StartEngine and CreateTable serve tests that need
// only a table. Every listener is on 127.0.0.1; no credential of the user's own
// environment reaches the engine or the functions.
//
// The package works on Linux and macOS. KillFunction needs Linux's /proc.
package localaws

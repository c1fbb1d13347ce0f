"""MiniStack with the part of CloudWatch that it leaves out, for localaws.

Alarms: its own evaluation looks at all metrics of a name whatever their dimensions, so that any queue's depth rings every
queue's alarm. It is switched off; alarms.go does it.

Lambda's metrics: it counts the calls of Invoke only. Here each invocation counts, whoever asked for it; there are no throttles.

Metrics in log lines: on AWS, a line in the Embedded Metric Format is a metric wherever it comes from. Here they are taken as
the lines are stored: once each, and without reading a log.
"""

import json
import logging
import sys
import threading
import time

from ministack.app import main
from ministack.services import cloudwatch, cloudwatch_logs, lambda_svc

log = logging.getLogger("localaws")
lock = threading.Lock()  # two threads with the first values of a metric would make two lists of it, and lose one


def embedded_metrics(message):
    """The data of a line as the Embedded Metric Format specifies it: each metric once for each set of dimensions."""
    line = json.loads(message)
    timestamp = time.time()  # of arrival: lines come at their invocation's end, when an alarm's short minutes have passed
    return [
        (directive["Namespace"], metric["Name"], {key: str(line[key]) for key in keys}, timestamp, metric.get("Unit", "None"), values)
        for directive in line["_aws"]["CloudWatchMetrics"]
        for metric in directive["Metrics"]
        for values in [line[metric["Name"]] if isinstance(line[metric["Name"]], list) else [line[metric["Name"]]]]
        for keys in directive["Dimensions"]
    ]


def store_metrics(events):
    for event in events:
        if '"_aws"' not in event["message"]:
            continue
        try:
            data = embedded_metrics(event["message"])
        except (ValueError, LookupError, TypeError):
            log.warning("a log line with _aws is no metric: %s", event["message"])
            continue
        with lock:
            for namespace, name, dimensions, timestamp, unit, values in data:
                store_datum(namespace, name, dimensions, timestamp, unit, None, values, None, None)


def append_log_events(stream, events):
    append(stream, events)
    store_metrics(events)


def emit_invocation(function, request_id, text, error, duration_ms, **more):
    emit_logs(function, request_id, text, error, duration_ms, **more)
    name = (function.get("config") or function)["FunctionName"]
    with lock:
        emit_metrics(name, duration_ms=duration_ms, error=error, throttle=False)


def replace(module, name, function):
    if not callable(getattr(module, name, None)):
        sys.exit(f"localaws: this release of MiniStack has no {module.__name__}.{name}: see shared/localaws/engine.py")
    replaced = getattr(module, name)
    setattr(module, name, function)
    return replaced


replace(cloudwatch, "_evaluate_alarm", lambda alarm: None)
append = replace(cloudwatch_logs, "_append_log_events", append_log_events)
emit_logs = replace(lambda_svc, "_emit_lambda_logs", emit_invocation)
emit_metrics = replace(lambda_svc, "_emit_lambda_metrics", lambda *_, **__: None)
store_datum = replace(cloudwatch, "_store_datum", cloudwatch._store_datum)
main()

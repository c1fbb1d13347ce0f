package main

import (
	"context"
	"time"

	"paidonce/shared/advance"
	"paidonce/shared/dynamo"
	"paidonce/shared/razorpay"
	"paidonce/shared/reconcile"
	"paidonce/shared/refund"
	"paidonce/shared/telemetry"
)

// adopted is the setting of UNKNOWN_ORDERS with which orders are made for payments whose order nobody knows.
const adopted = "adopt"

// work is what speaks to the gateway, with whatever key is valid at the time.
func (s settings) work(table *dynamo.Store, key func(context.Context) *razorpay.Client, tell telemetry.Telemetry) (reconcile.Reconciler, refund.Refunder) {
	advancer := advance.Advancer{Store: table, Rules: s.Rules(), Now: time.Now, Reserve: writingTime, Committed: tell.Committed}
	return reconcile.Reconciler{
			Gateways: map[string]func(context.Context) reconcile.Gateway{"razorpay": func(ctx context.Context) reconcile.Gateway { return key(ctx) }},
			Store:    table, Advancer: advancer, Stack: s.StackName, Account: s.RazorpayAccount, Adopts: s.UnknownOrders == adopted,
			Log: tell.Log, Now: time.Now,
		}, refund.Refunder{
			Gateways: map[string]func(context.Context) refund.Gateway{"razorpay": func(ctx context.Context) refund.Gateway { return key(ctx) }},
			Store:    table, Advancer: advancer, Stack: s.StackName, Now: time.Now,
		}
}

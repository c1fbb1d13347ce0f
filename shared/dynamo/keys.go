package dynamo

import (
	"fmt"
	"hash/fnv"
	"time"

	"paidonce/shared/payment"
)

// This file is the table. Every key that the application uses is built here; only the tour and the proofs, which bring
// about what should not happen, name a row by hand.
//
//	entity           pk                               sk                       index1 (sparse, KEYS_ONLY)
//	event            EVENT#<gateway>#<event id>       EVENT                    RECEIVED  DUE#event#<shard>  / next look
//	                                                                           PARKED    DUE#parked#<shard> / next try
//	                                                                           FAILED    DUE#failed#<shard> / received
//	                                                                           else      ORDER#<order id>   / received
//	order            ORDER#<order id>                 ORDER                    to be asked about: DUE#order#<shard> / then
//	fulfilment       ORDER#<order id>                 FULFILMENT               until sent: DUE#outbox#<shard> / written
//	notification     ORDER#<order id>                 OUTBOX#<key>             until sent: DUE#outbox#<shard> / written
//	ledger entry     ORDER#<order id>                 LEDGER#<subject>#<type>
//	counted attempt  ORDER#<order id>                 ATTEMPT#<payment id>
//	change           ORDER#<order id>                 CHANGE#<version>
//	refund request   ORDER#<order id>                 REFUND#<request id>      until settled: DUE#refund#<shard> / next look
//	callback         ORDER#<order id>                 CALLBACK#<payment id>
//	cursor           SWEEP#<gateway>                  CURSOR#<scan>
//	lease            SWEEP                            LEASE
//	payment pointer  GATEWAY#<gateway>#<payment id>   ORDER
//	order pointer    GATEWAY#<gateway>#<gateway order id>  ORDER
const (
	partitionKey      = "pk"
	sortKey           = "sk"
	indexPartitionKey = "gsi_pk"
	indexSortKey      = "gsi_sk"
	expiryAttribute   = "expires_at"
)

// shards spreads what is due over this many index partitions. One takes about 1,000 writes a second (AWS, "Best
// practices for designing partition keys"), and an event makes three on its way through.
const shards = 4

type key struct {
	PK string `dynamodbav:"pk"`
	SK string `dynamodbav:"sk"`
}

type indexKey struct {
	PK string `dynamodbav:"gsi_pk,omitempty"`
	SK string `dynamodbav:"gsi_sk,omitempty"`
}

const eventPrefix = "EVENT#"

func eventKey(k payment.EventKey) key {
	return key{eventPrefix + k.Gateway + "#" + k.ID, "EVENT"}
}

func orderKey(id string) key { return key{orderPartition(id), "ORDER"} }

const orderPrefix = "ORDER#"

func orderPartition(id string) string { return orderPrefix + id }

const changePrefix = "CHANGE#"

func changeKey(id string, version int64) key {
	return key{orderPartition(id), fmt.Sprintf("%s%012d", changePrefix, version)} // so that they sort by version
}

const refundPrefix = "REFUND#"

func refundKey(orderID, id string) key { return key{orderPartition(orderID), refundPrefix + id} }

const callbackPrefix = "CALLBACK#"

func callbackKey(orderID, paymentID string) key {
	return key{orderPartition(orderID), callbackPrefix + paymentID}
}

const (
	fulfilmentKey = "FULFILMENT"
	outboxPrefix  = "OUTBOX#"
)

func cursorKey(gateway, scan string) key { return key{"SWEEP#" + gateway, "CURSOR#" + scan} }

func leaseKey() key { return key{"SWEEP", "LEASE"} }

func pointerKey(gateway, gatewayID string) key {
	return key{"GATEWAY#" + gateway + "#" + gatewayID, "ORDER"}
}

// effectKey is where the effect's row lives. The key is the constraint: a second row has no other place to be.
func effectKey(o payment.Order, e payment.Effect) key {
	pk := orderPartition(o.ID)
	switch e := e.(type) {
	case payment.Fulfilment:
		return key{pk, fulfilmentKey}
	case payment.Notification:
		return key{pk, outboxPrefix + e.Key}
	case payment.LedgerEntry:
		return key{pk, fmt.Sprintf("LEDGER#%s#%s", e.SubjectID, e.Type)}
	case payment.CountedAttempt:
		return key{pk, "ATTEMPT#" + e.PaymentID}
	case payment.PaymentPointer:
		return pointerKey(o.Gateway, e.PaymentID)
	case payment.OrderPointer:
		return pointerKey(o.Gateway, e.GatewayOrderID)
	}
	panic(fmt.Sprintf("dynamo: no key for effect %T", e))
}

// dueEvents are the statuses in which somebody has to look at an event, by the name of their partitions.
var dueEvents = map[payment.EventStatus]string{
	payment.EventReceived: "event", payment.EventParked: "parked", payment.EventFailed: "failed",
}

// eventIndex lists the event where whoever has to look at it next will look.
func eventIndex(s payment.EventStatus, k payment.EventKey, orderID string, next, received time.Time) indexKey {
	switch {
	case s == payment.EventFailed:
		return due(dueEvents[s], k.Gateway+"#"+k.ID, received)
	case dueEvents[s] != "":
		return due(dueEvents[s], k.Gateway+"#"+k.ID, next)
	case orderID != "":
		return indexKey{orderPartition(orderID), received.UTC().Format(timeFormat) + "#" + k.ID}
	}
	return indexKey{}
}

// orderIndex lists the order where reconcile looks, if the gateway should be asked about it.
func orderIndex(id string, at time.Time) indexKey {
	if at.IsZero() {
		return indexKey{}
	}
	return due(dueOrders, id, at)
}

// refundIndex lists the refund request where reconcile looks, until it is settled.
func refundIndex(orderID, id string, at time.Time) indexKey {
	if at.IsZero() {
		return indexKey{}
	}
	return due(dueRefunds, orderID+"#"+id, at)
}

// The names of the partitions of what else is due.
const (
	dueOrders  = "order"
	dueRefunds = "refund"
	dueOutbox  = "outbox"
)

func outboxIndex(orderID string, written time.Time) indexKey { return due(dueOutbox, orderID, written) }

func due(what, id string, at time.Time) indexKey {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	if at.IsZero() {
		at = never
	}
	return indexKey{PK: duePartition(what, int(h.Sum32()%shards)), SK: at.UTC().Format(timeFormat) + "#" + id}
}

func duePartition(what string, shard int) string { return fmt.Sprintf("DUE#%s#%d", what, shard) }

// never is when something is due that waits for a person: after everything else.
var never = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// timeFormat has a fixed width, so that times sort as text.
const timeFormat = "2006-01-02T15:04:05.000Z"

// Package payment holds the vocabulary of a paid order and the rules that move it.
//
// Everything here is pure: no clock, no input or output, nothing but the standard library. A gateway's webhook, a
// browser's callback and a reconciliation sweep all become a list of [Fact] values, and [Apply] is the one function
// that decides what an order makes of them.
//
// Merging facts is a join (set union, maximum, or): the same facts lead to the same order whatever the order in which
// they arrive and however often each of them does.
package payment

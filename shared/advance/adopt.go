package advance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"paidonce/shared/payment"
)

// OrderReader is what adopting needs of a payment gateway.
type OrderReader interface {
	// Mode is the mode of the API key.
	Mode() payment.Mode
	// GatewayOrder reads an order, whoever created it. [payment.ErrNotFound] if there is none.
	GatewayOrder(ctx context.Context, id string) (payment.GatewayOrder, error)
}

// PointerStore finds orders by what the gateway calls them, and stores new ones.
type PointerStore interface {
	// OrderID finds our order for a gateway's. [payment.ErrNotFound] if it is none of ours.
	OrderID(ctx context.Context, gateway string, ref payment.Ref) (string, error)
	// Commit writes a change whole or not at all; [payment.ErrVersionConflict] and [payment.ErrEffectConflict] say that an order
	// or a pointer is there already.
	Commit(ctx context.Context, c payment.Commit) error
}

// Stray is a gateway order that nobody here knows.
type Stray struct {
	Gateway string
	ID      string // the gateway's
	Account string // the merchant account that it was seen on; empty if not said
	Source  payment.Source
}

// Adopt makes an order of ours for a gateway's and returns its id, or says why not: it has no amount, it is one that our own
// POST /orders made and has not finished, or its id is taken. Of two at once one adopts; both get the id.
func Adopt(ctx context.Context, s PointerStore, g OrderReader, stray Stray, stack string, at time.Time) (orderID, why string, err error) {
	found, err := g.GatewayOrder(ctx, stray.ID)
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return "", "the gateway does not show it to us", nil
	case err != nil:
		return "", "", fmt.Errorf("adopt: %w", err)
	}
	if id, ours := strings.CutPrefix(found.Note, stack+"/"); ours {
		return "", fmt.Sprintf("it was made for order %s, which has not got it yet", id), nil
	}
	order, ok := payment.Adopt(found, stray.Gateway, g.Mode(), stray.Account, at)
	if !ok {
		return "", "its amount is zero", nil
	}
	err = s.Commit(ctx, payment.Commit{
		Order:   order,
		Effects: []payment.Effect{payment.OrderPointer{GatewayOrderID: stray.ID}},
		Change:  &payment.Change{Source: stray.Source, What: "adopted: the gateway has it, and no order of ours is known for it", At: at},
	})
	if errors.Is(err, payment.ErrVersionConflict) || errors.Is(err, payment.ErrEffectConflict) {
		// Somebody was faster: another adopted it, or the shop's own call came through.
		id, err := s.OrderID(ctx, stray.Gateway, payment.Ref{GatewayOrderID: stray.ID})
		if errors.Is(err, payment.ErrNotFound) {
			return "", "its id is taken by another order", nil
		}
		return id, "", err
	}
	return order.ID, "", err
}

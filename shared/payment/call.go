package payment

import (
	"time"
)

// A Call is one call of a gateway's API with all its attempts, for whoever watches.
type Call struct {
	Gateway  string
	Name     string // such as "GET payments/pay_Q2bFhX1yZ0aBcD"; without the query
	Attempts int
	Status   int // of the last answer; 0: there was none
	Took     time.Duration
	Err      error // as the gateway's package knows it; nil: it was answered
}

// Failed reports whether the gateway did not serve the call: no answer, trouble of its own, a limit on the rate, or a key that it
// does not accept. A refusal of what was asked is an answer.
func (c Call) Failed() bool {
	switch c.Status {
	case 401, 403, 408, 425, 429:
		return true
	}
	return c.Err != nil && (c.Status < 400 || c.Status >= 500)
}

package razorpaytest

import (
	"encoding/json"
	"net/http"
)

// refusal is an error answer of the gateway's.
type refusal struct {
	status      int
	code        string
	description string
	reason      string // NA: none
	field       string
}

// Error implements error.
func (r *refusal) Error() string { return "razorpaytest: " + r.description }

// badRequest refuses what the caller sent.
func badRequest(field, description string) *refusal {
	return &refusal{http.StatusBadRequest, "BAD_REQUEST_ERROR", description, "input_validation_failed", field}
}

// business refuses what the state of things does not allow.
func business(description string) *refusal {
	return &refusal{http.StatusBadRequest, "BAD_REQUEST_ERROR", description, "NA", ""}
}

var (
	errUnauthorized = &refusal{http.StatusUnauthorized, "BAD_REQUEST_ERROR", "Authentication failed", "NA", ""}
	errNoSuchURL    = &refusal{http.StatusNotFound, "BAD_REQUEST_ERROR", "The requested URL was not found on the server.", "NA", ""}
	errNoSuchID     = business("The id provided does not exist")
	errThrottled    = &refusal{http.StatusTooManyRequests, "BAD_REQUEST_ERROR", "Too many requests", "NA", ""}
	errServer       = &refusal{http.StatusInternalServerError, "SERVER_ERROR",
		"We are facing some trouble completing your request at the moment. Please try again shortly.", "server_error", ""}

	// These two say nothing about whether it will be done: another call is at it.
	errKeyInProgress = &refusal{http.StatusConflict, "BAD_REQUEST_ERROR",
		"Another request with the same idempotency key is still in progress.", "NA", ""}
	errPaymentBusy = business("Request failed because another payment operation is in progress.")
)

// write sends the refusal in the gateway's envelope.
func (r *refusal) write(w http.ResponseWriter) {
	type details struct {
		Code        string   `json:"code"`
		Description string   `json:"description"`
		Source      *string  `json:"source"`
		Step        *string  `json:"step"`
		Reason      *string  `json:"reason"`
		Metadata    struct{} `json:"metadata"`
		Field       string   `json:"field,omitempty"`
	}
	d := details{Code: r.code, Description: r.description, Field: r.field}
	switch r.reason {
	case "": // the gateway writes null
	case "input_validation_failed":
		d.Source, d.Step, d.Reason = new("business"), new("payment_initiation"), &r.reason
	default:
		d.Source, d.Step, d.Reason = new("NA"), new("NA"), &r.reason
	}
	writeJSON(w, r.status, map[string]details{"error": d})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(value) // fails only if the caller is gone
}

// answer runs a handler that returns what to send.
func answer(handle func(r *http.Request) (any, *refusal)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, refused := handle(r)
		if refused != nil {
			refused.write(w)
			return
		}
		writeJSON(w, http.StatusOK, value)
	}
}

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
	reason      string
	field       string
}

// Error implements error.
func (r *refusal) Error() string { return "razorpaytest: " + r.description }

// badRequest refuses what the caller sent.
func badRequest(field, description string) *refusal {
	return &refusal{http.StatusBadRequest, "BAD_REQUEST_ERROR", description, "input_validation_failed", field}
}

var (
	errUnauthorized = &refusal{http.StatusUnauthorized, "BAD_REQUEST_ERROR", "Authentication failed", "NA", ""}
	errNoSuchURL    = &refusal{http.StatusNotFound, "BAD_REQUEST_ERROR", "The requested URL was not found on the server.", "NA", ""}
	errNoSuchID     = &refusal{http.StatusBadRequest, "BAD_REQUEST_ERROR", "The id provided does not exist", "NA", ""}
	errThrottled    = &refusal{http.StatusTooManyRequests, "BAD_REQUEST_ERROR", "Too many requests", "NA", ""}
	errServer       = &refusal{http.StatusInternalServerError, "SERVER_ERROR",
		"We are facing some trouble completing your request at the moment. Please try again shortly.", "server_error", ""}
)

// write sends the refusal in the gateway's envelope.
func (r *refusal) write(w http.ResponseWriter) {
	type details struct {
		Code        string   `json:"code"`
		Description string   `json:"description"`
		Source      string   `json:"source"`
		Step        string   `json:"step"`
		Reason      string   `json:"reason"`
		Metadata    struct{} `json:"metadata"`
		Field       string   `json:"field,omitempty"`
	}
	writeJSON(w, r.status, map[string]details{"error": {
		Code: r.code, Description: r.description, Source: "NA", Step: "NA", Reason: r.reason, Field: r.field,
	}})
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

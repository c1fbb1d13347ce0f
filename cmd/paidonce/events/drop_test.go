package events

import (
	"slices"
	"strings"
	"testing"

	"paidonce/shared/payment"
	"paidonce/shared/queue"
)

func TestDropTakesOutWhatNamesNoEventAndNothingElse(t *testing.T) {
	gone := queue.Encode(payment.EventKey{Gateway: "razorpay", ID: "gone"})
	const odd, newer = `hello`, `{"v":9}`
	for _, c := range []struct {
		name   string
		args   []string // ODD stands for the id of the message that is not ours, NEWER for the newer release's
		asks   bool
		answer string
		left   []string // what is left beside the event's
		err    string
	}{
		{"not ours, by its message", []string{"ODD", "--yes"}, false, "", []string{gone, newer}, ""},
		{"as the list names it", []string{"message ODD", "--yes"}, false, "", []string{gone, newer}, ""},
		{"without a row, by its event", []string{"razorpay/gone", "--yes"}, false, "", []string{odd, newer}, ""},
		{"both, one of them twice", []string{"razorpay/gone", "ODD", "razorpay/gone", "--yes"}, false, "", []string{newer}, ""},
		{"agreed", []string{"ODD"}, true, "y\n", []string{gone, newer}, ""},
		{"not agreed", []string{"ODD"}, true, "n\n", []string{odd, gone, newer}, ""},
		{"nobody to ask", []string{"ODD"}, false, "", []string{odd, gone, newer}, "no terminal"},
		{"an event that has a row", []string{"ODD", "razorpay/kept", "--yes"}, false, "", []string{odd, gone, newer}, "paidonce dlq redrive razorpay/kept"},
		{"of a newer release", []string{"NEWER", "--yes"}, false, "", []string{odd, gone, newer}, "newer release"},
		{"unknown", []string{"razorpay/other", "--yes"}, false, "", []string{odd, gone, newer}, "has no message razorpay/other"},
		{"none", []string{"--yes"}, false, "", []string{odd, gone, newer}, "say which"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newQueueBench(t)
			b.asks, b.answer = c.asks, c.answer
			kept := queue.Encode(b.letter("kept", nil))
			b.sqs.Put(benchDead, odd, day)
			b.sqs.Put(benchDead, gone, day)
			b.sqs.Put(benchDead, newer, day)
			ids := map[string]string{}
			letters, _, err := queue.NewDeadLetters(b.sqs, benchDead, nil, b.now).List(t.Context(), func(int) {})
			if err != nil {
				t.Fatal(err)
			}
			for i, body := range []string{kept, odd, gone, newer} { // oldest first, as they were put
				ids[body] = letters[i].ID
			}
			for i := range c.args {
				c.args[i] = strings.NewReplacer("ODD", ids[odd], "NEWER", ids[newer]).Replace(c.args[i])
			}
			_, _, err = b.run(append([]string{"dlq", "drop"}, c.args...)...)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
			got, hidden := b.sqs.Bodies(benchDead)
			want := append([]string{kept}, c.left...)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || hidden != 0 {
				t.Errorf("left %q, %d hidden; want %q", got, hidden, want)
			}
			if sent, _ := b.sqs.Bodies(benchEvents); len(sent) > 0 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

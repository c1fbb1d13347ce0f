package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"paidonce/cmd/paidonce/stack"
	"paidonce/cmd/paidonce/terminal"
	"paidonce/shared/metrics"
)

const (
	// oldEvents is for how long events may come that are signed with a secret that was replaced: the gateway repeats for 24 hours,
	// and its support replays events of the last 15 days (Razorpay, "Webhook FAQs").
	oldEvents = 16 * 24 * time.Hour
	// repeats is for how long the gateway repeats by itself, and an hour.
	repeats = 25 * time.Hour
	// counted is how far back is read what was counted. CloudWatch keeps hours for 455 days.
	counted = 63 * 24 * time.Hour
	// countedBy is the period of which the numbers are.
	countedBy = time.Hour
	// blindness is for how long nothing may have been counted at all in what counts as evidence. A shop's weekend is shorter; a
	// release that counts nothing may have run for longer.
	blindness = 3 * 24 * time.Hour
)

// rotation says when each webhook secret last verified a webhook, and whether a previous one may go.
func (d *doctor) rotation(ctx context.Context) finding {
	secrets, name, err := d.readWebhookSecrets(ctx)
	if err != nil {
		return withoutSecret(err)
	}
	var labels []string
	for _, s := range secrets {
		labels = append(labels, s.Label)
	}
	if !slices.ContainsFunc(labels, isPrevious) {
		return isFine("only %s: no previous secret that could go", strings.Join(labels, ", "))
	}
	changed, err := d.lastChanged(ctx, name)
	if err != nil {
		return trouble(err)
	}
	all := []series{d.received("")}
	for _, label := range labels {
		all = append(all, d.received(label))
	}
	now := d.now()
	numbers, err := d.points(ctx, now.Add(-counted).Truncate(countedBy), all...)
	if err != nil {
		return trouble(err)
	}
	u := secretUse{now: now, changed: changed, last: map[string]time.Time{}}
	for i, label := range labels {
		u.last[label] = lastAbove(numbers[i+1], 0)
	}
	u.hours = hoursOf(numbers)
	var found []finding
	var seen []string
	for _, label := range labels {
		f := u.judge(label)
		found, seen = append(found, f), append(seen, f.Seen)
	}
	result := worst(found...)
	result.Seen = strings.Join(seen, "; ") // of all of them
	return result
}

// received is the metric of the deliveries that a secret verified, or of all.
func (d *doctor) received(label string) series {
	dimensions := map[string]string{metrics.StackDimension: d.stack.name}
	if label != "" {
		dimensions[metrics.Received.By] = stack.GatewayName + "/" + label
	}
	return series{namespace: metrics.Namespace, name: metrics.Received.Name, stat: "Sum", period: countedBy, dimensions: dimensions}
}

// lastChanged is when anything of the secret was last changed, which is not before its labels last were.
func (d *doctor) lastChanged(ctx context.Context, name string) (time.Time, error) {
	out, err := d.secrets.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: &name})
	switch {
	case err != nil:
		return time.Time{}, called("secretsmanager:DescribeSecret", err)
	case out.LastChangedDate != nil:
		return *out.LastChangedDate, nil
	case out.CreatedDate != nil:
		return *out.CreatedDate, nil
	}
	return time.Time{}, called("secretsmanager:DescribeSecret", errors.New("the answer has no date"))
}

// hoursOf are the hours in which anything was counted, in their order.
func hoursOf(numbers [][]point) []time.Time {
	hours := map[int64]time.Time{}
	for _, points := range numbers {
		for _, p := range points {
			hours[p.at.Unix()] = p.at
		}
	}
	return slices.SortedFunc(maps.Values(hours), time.Time.Compare)
}

const (
	currentSuffix  = "_current"
	previousSuffix = "_previous"
)

func isPrevious(label string) bool { return strings.HasSuffix(label, previousSuffix) }

// secretUse is what is known of how webhooks were verified.
type secretUse struct {
	now     time.Time
	changed time.Time            // when the secrets' document was
	last    map[string]time.Time // by label, the last hour in which it verified a webhook; zero: none in all that was read
	hours   []time.Time          // in which any webhook was counted
}

const rotate = "docs/runbook.md#rotate-the-webhook-secret"

func (u secretUse) judge(label string) finding {
	if isPrevious(label) {
		return u.judgePrevious(label)
	}
	last := u.last[label]
	previous := u.last[strings.TrimSuffix(label, currentSuffix)+previousSuffix]
	switch {
	case last.Add(countedBy).Before(u.changed) && previous.After(u.changed.Add(repeats)):
		return finding{warning, fmt.Sprintf("%s has verified none since the secret was changed (%s)", label, terminal.Moment(u.changed)),
			"enter it in the gateway's dashboard, which still signs with the one before: " + rotate}
	case last.IsZero():
		return isFine("%s verified none in %d days", label, int(counted.Hours()/24))
	}
	return isFine("%s last verified one in the hour from %s", label, terminal.Moment(last))
}

// judgePrevious says whether a previous secret may go. That nothing was counted under its label is evidence only for the time in
// which it had the label, and in which something was counted at all.
func (u secretUse) judgePrevious(label string) finding {
	last := u.last[label]
	used := !last.IsZero() && !last.Add(countedBy).Before(u.changed)
	keepUntil := u.changed.Add(oldEvents)
	if used {
		keepUntil = last.Add(countedBy + oldEvents)
	}
	from, to := u.uncounted()
	switch {
	case used && u.now.Before(keepUntil):
		return isFine("%s is still used, last in the hour from %s: keep it until %s", label, terminal.Moment(last), terminal.Moment(keepUntil))
	case u.now.Before(keepUntil):
		return isFine("%s is not used, but the secret was changed only on %s: keep it until %s", label, terminal.Moment(u.changed), terminal.Moment(keepUntil))
	case len(u.hours) == 0:
		return notChecked("%s: not enough history, no webhook was counted yet", label)
	case u.hours[0].After(u.now.Add(-oldEvents)):
		return notChecked("%s: not enough history, counting since %s: ask again after %s", label, terminal.Moment(u.hours[0]), terminal.Moment(u.hours[0].Add(oldEvents)))
	case !to.IsZero():
		return notChecked("%s: no webhook at all was counted from %s to %s, which proves nothing: keep it, and ask again when they have come for %d days",
			label, terminal.Moment(from), terminal.Moment(to), int(oldEvents.Hours()/24))
	}
	since := fmt.Sprintf("for %d days", int(oldEvents.Hours()/24))
	if used {
		since = "since the hour from " + terminal.Moment(last)
	}
	return finding{warning, fmt.Sprintf("%s can go: no webhook was signed with it %s", label, since), "remove it as " + rotate + " says"}
}

// uncounted is the latest time of the evidence in which nothing was counted for too long; zero if there is none.
func (u secretUse) uncounted() (from, to time.Time) {
	begin := u.now.Add(-oldEvents)
	for _, hour := range append(slices.Clone(u.hours), u.now) {
		if hour.Sub(begin) > blindness {
			from, to = begin, hour
		}
		if end := hour.Add(countedBy); end.After(begin) {
			begin = end
		}
	}
	return from, to
}

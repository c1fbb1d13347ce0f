package terminal

import (
	"testing"
	"time"
)

func TestSpell(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 59*time.Minute + 59*time.Second: "59m59s",
		time.Hour: "1h00m", 23*time.Hour + 59*time.Minute: "23h59m", 75 * time.Hour: "3d03h", 59*time.Second + 600*time.Millisecond: "1m00s",
	} {
		if got := Spell(d); got != want {
			t.Errorf("%s is spelled %s, want %s", d, got, want)
		}
	}
}

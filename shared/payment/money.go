package payment

import (
	"fmt"
	"strconv"
	"strings"
)

// Money is an amount in the currency's minor units (paise for INR, whole yen for JPY, thousandths for KWD).
type Money struct {
	Amount   int64  // minor units
	Currency string // ISO 4217, upper case
}

// MaxAmount is the largest amount of one payment or order that is taken, in minor units: ten trillion rupees. It keeps
// sums over any number of payments that an order can have far from the end of an int64.
const MaxAmount = 1_000_000_000_000_000

// minorDigits lists the currencies whose minor unit is not a hundredth (ISO 4217).
var minorDigits = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0,
	"VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

// String renders m for people: "499.00 INR", "295 JPY", "99.990 KWD".
func (m Money) String() string {
	digits, listed := minorDigits[m.Currency]
	if !listed {
		digits = 2
	}
	sign, n := "", strconv.FormatInt(m.Amount, 10)
	if rest, negative := strings.CutPrefix(n, "-"); negative {
		sign, n = "-", rest
	}
	if missing := digits + 1 - len(n); missing > 0 {
		n = strings.Repeat("0", missing) + n
	}
	if digits > 0 {
		n = n[:len(n)-digits] + "." + n[len(n)-digits:]
	}
	return fmt.Sprintf("%s%s %s", sign, n, m.Currency)
}

// IsCurrency reports whether code has the form of an ISO 4217 code: three upper-case letters.
func IsCurrency(code string) bool {
	if len(code) != 3 {
		return false
	}
	for _, c := range []byte(code) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return true
}

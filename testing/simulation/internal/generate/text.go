package generate

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// letters are those of usual texts, and oddities are pieces of unusual ones that break programs.
const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

var oddities = []string{"A", ".", "_", "-", " ", "/", ":", "%", "\"", "'", "$(A)", "{{a}}", "é", "世", "\n", "😀"}

// text draws a text, which may have to be refused: a pattern and a format do not know of each other.
func (d *drawer) text(n *node) string {
	var sources []func() string
	if n.words != nil {
		sources = append(sources, func() string { return n.words.draw(d.r) })
	}
	if format, ok := formats[strings.ReplaceAll(n.values.Format, "-", "")]; ok {
		sources = append(sources, func() string { return format(d.r) })
	}
	if isQuantity(n.values.Pattern) {
		sources = []func() string{func() string { return quantity(d.r) }}
	} else if n.schema.XIntOrString && n.words == nil {
		sources = append(sources, func() string { return pick(d.r, []string{"0%", "1%", "50%", "100%", "a", "http"}) })
	}
	if len(sources) == 0 {
		sources = append(sources, func() string { return d.plainText(n) })
	}
	if len(n.texts) > 0 && d.r.IntN(3) == 0 {
		return d.textLike(pick(d.r, n.texts), sources[0])
	}
	if len(n.patterns) > 0 && d.r.IntN(3) == 0 {
		return pick(d.r, n.patterns).draw(d.r)
	}
	return pick(d.r, sources)()
}

// textLike draws a text that is, begins or ends as another.
func (d *drawer) textLike(other string, draw func() string) string {
	switch d.r.IntN(6) {
	case 0:
		return other + draw()
	case 1:
		return draw() + other
	default:
		return other
	}
}

// plainText draws a text of which the schema says nothing but the length.
func (d *drawer) plainText(n *node) string {
	from, to := lengthsOf(n.values.MinLength, n.values.MaxLength)
	length := from
	switch d.r.IntN(16) {
	case 0:
	case 1:
		if n.values.MaxLength != nil {
			length = to
		}
	default:
		length = min(from+few(d.r, 4), to)
	}
	text := []rune(word(d.r, length))
	if d.r.IntN(12) == 0 {
		odd := []rune(pick(d.r, oddities))
		text = slices.Insert(text, d.r.IntN(len(text)+1), odd...)
		text = text[:max(min(len(text), to), 0)]
	}
	return string(text)
}

// word draws a name of Kubernetes of a length.
func word(r *rand.Rand, length int) string {
	text := make([]byte, length)
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
		if i > 0 && i < length-1 && r.IntN(12) == 0 {
			text[i] = '-'
		}
	}
	return string(text)
}

// isQuantity reports whether a pattern is the one that generated definitions have for quantities. It allows more than
// there are, such as "1e.5", and no Go type of an operator accepts that.
func isQuantity(pattern string) bool {
	return strings.HasPrefix(pattern, `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|`)
}

func quantity(r *rand.Rand) string {
	number := strconv.Itoa(few(r, 3))
	switch r.IntN(8) {
	case 0:
		number = pick(r, []string{"0", "0.5", "1.5", "100", "1000", "-1"})
	case 1:
		number += strconv.Itoa(r.IntN(1000))
	}
	return number + pick(r, []string{"", "", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"})
}

// formats are those that custom resources have, without the dashes of their names.
var formats = map[string]func(r *rand.Rand) string{
	"datetime": func(r *rand.Rand) string { return moment(r).Format(time.RFC3339) },
	"date":     func(r *rand.Rand) string { return moment(r).Format(time.DateOnly) },
	"duration": func(r *rand.Rand) string {
		return pick(r, []string{"0s", "1ms", "1s", "90s", "1m0s", "1h0m0s", "24h", "-1s"})
	},
	"ipv4": address4,
	"ipv6": address6,
	"cidr": func(r *rand.Rand) string {
		if r.IntN(2) == 0 {
			return fmt.Sprintf("10.%d.0.0/%d", r.IntN(256), 16+r.IntN(9))
		}
		return fmt.Sprintf("fd00:%x::/%d", r.IntN(0x10000), 32+r.IntN(33))
	},
	"mac": func(r *rand.Rand) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", r.IntN(256), r.IntN(256)) },
	"uri": func(r *rand.Rand) string {
		return pick(r, []string{"http", "https"}) + "://" + host(r) + pick(r, []string{"", "/", "/a", ":8080/a?b=c"})
	},
	"email":    func(r *rand.Rand) string { return word(r, 1+few(r, 4)) + "@" + host(r) },
	"hostname": host,
	"uuid":     func(r *rand.Rand) string { return uuid(r, 1+r.IntN(5)) },
	"uuid3":    func(r *rand.Rand) string { return uuid(r, 3) },
	"uuid4":    func(r *rand.Rand) string { return uuid(r, 4) },
	"uuid5":    func(r *rand.Rand) string { return uuid(r, 5) },
	"byte": func(r *rand.Rand) string {
		content := make([]byte, 1+few(r, 4))
		for i := range content {
			content[i] = byte(r.IntN(256))
		}
		return base64.StdEncoding.EncodeToString(content)
	},
	"k8sshortname": func(r *rand.Rand) string { return pick(r, []string{word(r, 1+few(r, 5)), word(r, 63)}) },
	"k8slongname": func(r *rand.Rand) string {
		return pick(r, []string{word(r, 1+few(r, 5)), host(r), word(r, 253)})
	},
	"hexcolor": func(r *rand.Rand) string { return fmt.Sprintf("#%06x", r.IntN(1<<24)) },
	"rgbcolor": func(r *rand.Rand) string {
		return fmt.Sprintf("rgb(%d,%d,%d)", r.IntN(256), r.IntN(256), r.IntN(256))
	},
	"bsonobjectid": func(r *rand.Rand) string { return fmt.Sprintf("%024x", r.Uint64()) },
	"ssn": func(r *rand.Rand) string {
		return fmt.Sprintf("%03d-%02d-%04d", r.IntN(1000), r.IntN(100), r.IntN(10000))
	},
	"creditcard": func(*rand.Rand) string { return "4111111111111111" },
	"isbn":       func(r *rand.Rand) string { return "0321751043" },
	"isbn10":     func(r *rand.Rand) string { return "0321751043" },
	"isbn13":     func(r *rand.Rand) string { return "978-0321751041" },
}

// moment draws a time around the one at which virtual time begins.
func moment(r *rand.Rand) time.Time {
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return from.Add(time.Duration(r.IntN(48)-24) * time.Hour).Add(time.Duration(r.IntN(3600)) * time.Second)
}

func address4(r *rand.Rand) string {
	return fmt.Sprintf("10.%d.%d.%d", r.IntN(256), r.IntN(256), r.IntN(256))
}

func address6(r *rand.Rand) string { return fmt.Sprintf("fd00::%x", 1+r.IntN(0xffff)) }

func host(r *rand.Rand) string {
	return word(r, 1+few(r, 4)) + pick(r, []string{"", ".a", ".example.com"})
}

func uuid(r *rand.Rand, version int) string {
	return fmt.Sprintf("%08x-%04x-%d%03x-%x%03x-%012x", r.Uint32(), r.IntN(1<<16), version, r.IntN(1<<12),
		8+r.IntN(4), r.IntN(1<<12), r.Uint64N(1<<48))
}

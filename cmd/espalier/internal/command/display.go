package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/espalier-dev/espalier/apis"
	"github.com/espalier-dev/espalier/component"
	"github.com/espalier-dev/espalier/internal/message"
)

// display shows how far a component is: on a terminal in one line with a bar, which is drawn again and again, else in a
// line for each message that is new.
type display struct {
	out io.Writer
	// width returns how wide the terminal is. It is nil if there is none.
	width  func() int
	colour bool
	// last is what was shown last.
	last  string
	drawn bool
}

// newDisplay returns a display on a writer. It has colours on a terminal, unless NO_COLOR is set or the terminal has
// none.
func newDisplay(out io.Writer, getenv func(string) string) *display {
	out = raw(out)
	d := &display{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		d.width = func() int {
			width, _, err := term.GetSize(int(file.Fd()))
			if err != nil || width < 20 {
				return 80
			}
			return width
		}
		d.colour = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	}
	return d
}

// show shows the progress of a component.
func (d *display) show(p component.Progress) {
	said := message.Printable(p.Message)
	if d.width == nil {
		if said != d.last {
			fmt.Fprintln(d.out, said)
		}
		d.last = said
		return
	}
	done := 0
	for i := range p.Inventory {
		if p.Inventory[i].IsDone() {
			done++
		}
	}
	text := fmt.Sprintf("%s %d/%d %s", bar(done, len(p.Inventory)), done, len(p.Inventory), said)
	d.draw(fit(text, d.width()-1), p.State)
}

const barWidth = 20

func bar(done, total int) string {
	filled := barWidth * done / max(total, 1)
	return "[" + strings.Repeat("#", filled) + strings.Repeat(".", barWidth-filled) + "]"
}

// fit cuts a text to a width.
func fit(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}

func (d *display) draw(text string, state apis.ComponentState) {
	if text == d.last && d.drawn {
		return
	}
	d.last, d.drawn = text, true
	if d.colour {
		text = coloured(state) + text + "\x1b[0m"
	}
	// The line is cleared, because the one before may have been longer.
	fmt.Fprint(d.out, "\r\x1b[2K"+text)
}

func coloured(state apis.ComponentState) string {
	switch state {
	case apis.ComponentReady:
		return "\x1b[32m"
	case apis.ComponentError:
		return "\x1b[31m"
	}
	return "\x1b[33m"
}

// end leaves the line, so that what follows has its own.
func (d *display) end() {
	if d.drawn {
		fmt.Fprintln(d.out)
	}
	d.drawn = false
}

package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/espalier-dev/espalier/internal/testenv/demo/demotest"
)

// The variables that "make browser" sets.
const (
	// axeVariable has the path of the script of axe-core. Without it the tests are skipped.
	axeVariable = "ESPALIER_AXE"
	// picturesVariable has a folder for screenshots. Without it none are made.
	picturesVariable = "ESPALIER_PICTURES"
)

// patience is how long the demo may take to show what is waited for. The whole of it takes some minutes.
const patience = 6 * time.Minute

var address = regexp.MustCompile(`The page of the operator is at (\S+) until`)

// startDemo starts the demo with a page, and returns the address of the page and a browser.
func startDemo(t *testing.T) (string, context.Context) {
	t.Helper()
	if os.Getenv(axeVariable) == "" {
		t.Skip("it needs a browser and axe-core: make browser")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-w", "-o", bin, "./platform")
	build.Dir = "../../examples/demo"
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, text)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(bin, "platform"), "-page")
	command.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=", "REAL=")
	page, _ := demotest.StartProgram(t, command, address)

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	// It lives as long as the context of the first call.
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return page, browser
}

// do does steps in the browser, and fails the test if they take too long.
func do(t *testing.T, browser context.Context, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	run(t, browser, what, chromedp.Steps(steps...))
}

// run does an action in the browser, and returns its value.
func run[T any](t *testing.T, browser context.Context, what string, action chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(browser, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		text, _ := chromedp.Run(browser, chromedp.Text(chromedp.CSS("main")))
		t.Fatalf("%s: %v; the page says\n%s", what, err, text)
	}
	return value
}

// shows waits until the main part of the page has a text. The page has to change by itself.
func shows(text string) chromedp.Action[chromedp.Void] {
	poll := chromedp.Poll[bool](fmt.Sprintf("document.querySelector('main').textContent.includes(%q)", text),
		chromedp.WithPollingTimeout(patience), chromedp.WithPollingInterval(100*time.Millisecond))
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := poll(ctx, target); err != nil {
			return fmt.Errorf("there is no text %q: %w", text, err)
		}
		return nil
	})
}

// violation is a finding of axe-core.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML string }
}

// accessible fails the test at each finding of axe-core.
func accessible(t *testing.T, browser context.Context, what string) {
	t.Helper()
	script, err := os.ReadFile(os.Getenv(axeVariable))
	if err != nil {
		t.Fatal(err)
	}
	const audit = `axe.run().then(results => results.violations.map(
		v => ({id: v.id, help: v.help, nodes: v.nodes.map(n => ({html: n.html}))})))`
	run(t, browser, what, chromedp.Evaluate[string](string(script)+"\n;axe.version"))
	for _, v := range run(t, browser, what, chromedp.Evaluate[[]violation](audit, chromedp.EvalAwaitPromise)) {
		t.Errorf("%s: axe-core finds %s, want nothing: %s: %+v", what, v.ID, v.Help, v.Nodes)
	}
}

// picture writes a screenshot of what is seen.
func picture(t *testing.T, browser context.Context, name string) {
	t.Helper()
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		return
	}
	image := run(t, browser, name, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(folder, name+".png"), image, 0o644); err != nil {
		t.Fatal(err)
	}
}

// colors has the browser prefer light or dark colours.
func colors(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// The page moves by itself while the demo goes on, and says why the operator waits. Each page passes axe-core, in light
// and dark colours and on a phone.
func TestPage(t *testing.T) {
	page, browser := startDemo(t)
	do(t, browser, "the overview", chromedp.Navigate(page), shows("Installation"), shows("1 resource"))
	accessible(t, browser, "the overview")
	picture(t, browser, "overview")
	do(t, browser, "the list", chromedp.Click(chromedp.CSS("#roots h2 a")), chromedp.WaitVisible(chromedp.CSS("table a")))
	accessible(t, browser, "the list")
	do(t, browser, "the resource", chromedp.Click(chromedp.CSS("table a")), chromedp.WaitVisible(chromedp.CSS("#requests")))
	resource := run(t, browser, "its address", chromedp.Location())

	do(t, browser, "a wave", shows("waiting for ConfigMap demo-observability/demo-migration"))
	picture(t, browser, "wave")
	for _, scheme := range []string{"dark", "light"} {
		do(t, browser, scheme, colors(scheme))
		accessible(t, browser, "the resource in "+scheme)
	}
	onPhone(t, browser)
	withFreshPlan(t, browser, resource)
	do(t, browser, "a fight", shows("keeps changing .data.retention"))
	do(t, browser, "a type in use", shows("in use by Dashboard demo-observability/sales"))
	do(t, browser, "a suspended feature", shows("Suspended"))
	do(t, browser, "a blocked deletion", shows("DeletionBlocked"))
	picture(t, browser, "deletion-blocked")
	withKeys(t, browser, page)
	withoutScripts(t, browser, resource)
}

// onPhone shows that a page fits a small screen.
func onPhone(t *testing.T, browser context.Context) {
	t.Helper()
	do(t, browser, "a phone", chromedp.EmulateViewport(360, 740))
	accessible(t, browser, "the resource on a phone")
	overflow := run(t, browser, "its width", chromedp.Evaluate[int](
		`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	if overflow > 0 {
		t.Errorf("on a phone the page is %d pixels wider than the screen, want it to fit", overflow)
	}
	picture(t, browser, "phone")
	do(t, browser, "a screen", chromedp.EmulateViewport(1280, 900))
}

// withFreshPlan shows that a browser sends the form that asks for a plan, with which no script has to do, and that it
// shows the plan. It ends at the page of the resource.
func withFreshPlan(t *testing.T, browser context.Context, resource string) {
	t.Helper()
	const button = "form[action=plan] button"
	do(t, browser, "the component", chromedp.Click(chromedp.CSS("h3 a")),
		chromedp.WaitVisible(chromedp.CSS(button)))
	accessible(t, browser, "the component")
	do(t, browser, "a fresh plan", chromedp.Click(chromedp.CSS(button)), chromedp.WaitVisible(chromedp.CSS("#plan")),
		shows("unchanged"))
	for _, scheme := range []string{"dark", "light"} {
		do(t, browser, scheme, colors(scheme))
		accessible(t, browser, "a fresh plan in "+scheme)
	}
	picture(t, browser, "plan")
	do(t, browser, "the resource again", chromedp.Navigate(resource))
}

// withKeys shows that the first key leads to the link that skips what is above the content.
func withKeys(t *testing.T, browser context.Context, page string) {
	t.Helper()
	do(t, browser, "the tabulator", chromedp.Navigate(page), chromedp.KeyEvent(kb.Tab))
	focused := run(t, browser, "the focus", chromedp.Evaluate[string](`document.activeElement.getAttribute("href")`))
	if focused != "#content" {
		t.Errorf("the first tabulator leads to %q, want the link to #content", focused)
	}
}

// withoutScripts shows that a page has all its content when a browser runs no script.
func withoutScripts(t *testing.T, browser context.Context, resource string) {
	t.Helper()
	disable := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	do(t, browser, "a page without scripts", disable, chromedp.Navigate(resource))
	text := run(t, browser, "its text", chromedp.Text(chromedp.CSS("main")))
	for _, want := range []string{"Installation", "Search"} {
		if !strings.Contains(text, want) {
			t.Errorf("without scripts the page lacks %q:\n%s", want, text)
		}
	}
}

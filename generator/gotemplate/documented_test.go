package gotemplate_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/generator/gotemplate"
	"github.com/espalier-dev/espalier/internal/testenv/documented"
)

func TestDocumentedCode(t *testing.T) {
	documented.Check(t, "documented_test.go", "README.md")
	ctx, text, data := context.Background(), "size: {{ .size }}", map[string]any{"size": 3}

	set, err := gotemplate.Parse(map[string]string{"config.yaml": text}, gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	output, err := set.Execute(ctx, "config.yaml", data, nil)
	if err != nil || output != "size: 3" {
		t.Errorf("the output is %q (%v), want size: 3", output, err)
	}
}

package helm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/generator"
	"github.com/espalier-dev/espalier/generator/helm"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// One component waits for its cluster in the middle of a large template. Another large one is rendered meanwhile.
func TestLookupHoldsBackNobody(t *testing.T) {
	t.Parallel()
	large := generator.UnstructurableMap{"text": strings.Repeat("0123456789", 300_000)}
	const printed = "  a: {{ .Values.text | trim }}\n"
	asked, answer := make(chan struct{}), make(chan struct{})
	slow := intercepted(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
		object client.Object, options ...client.GetOption) error {
		close(asked)
		<-answer
		return c.Get(ctx, key, object, options...)
	}})
	looking := load(t, files{"templates/a.yaml": configMap("main", printed+
		`  b: {{ (lookup "v1" "Secret" "south" "key").data | toJson | quote }}`+
		"\n  c: {{ .Values.text | upper }}\n")}, helm.Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := looking.Generate(slow.context(t.Context()), "north", "shop", large)
		ended <- err
	}()
	<-asked
	made := load(t, files{"templates/a.yaml": configMap("main", printed)}, helm.Options{})
	if _, err := made.Generate(newCluster().context(t.Context()), "north", "other", large); err != nil {
		t.Errorf("the other component has the error %v, want none", err)
	}
	close(answer)
	if err := <-ended; err != nil {
		t.Errorf("the component that looked something up has the error %v, want none", err)
	}
}

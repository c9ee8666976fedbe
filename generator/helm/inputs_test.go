package helm_test

import (
	"testing"

	"github.com/espalier-dev/espalier/generator/helm"
)

func TestInputsWithoutRequests(t *testing.T) {
	t.Parallel()
	generator, cluster := load(t, simple, helm.Options{}), newCluster()
	cluster.client, cluster.discovery = nil, nil
	if before := inputs(t, generator, cluster); before != "" {
		t.Errorf("want no inputs, got %q", before)
	}
	generate(t, generator, cluster, "{}")
	if after := inputs(t, generator, cluster); after != "" {
		t.Errorf("want no inputs, got %q", after)
	}
}

func TestInputsOfWhatTheClusterServes(t *testing.T) {
	t.Parallel()
	for name, chart := range map[string]files{
		"Capabilities": {"templates/a.yaml": configMap("a", "  b: {{ .Capabilities.KubeVersion.Version }}")},
		"tpl":          {"templates/a.yaml": configMap("a", "  b: {{ tpl .Values.x . }}"), "values.yaml": "x: why\n"},
		"in a sub-chart": simple.and(files{
			"Chart.yaml":       sub("one")["Chart.yaml"],
			"templates/_a.tpl": "{{ define \"a\" }}{{ .Capabilities.APIVersions }}{{ end }}",
		}.in("charts/one")),
		"kubeVersion": simple.and(files{"Chart.yaml": chartYAML + "kubeVersion: '>=1.2'\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			generator, one, other := load(t, chart, helm.Options{}), newCluster(), newCluster()
			other.discovery.DiscoveryInterface = newDiscovery().DiscoveryInterface
			generate(t, generator, one, "{}")
			before := inputs(t, generator, one)
			if before != inputs(t, generator, one) {
				t.Error("want the same inputs while nothing changes")
			}
			if one.discovery.asked != 1 {
				t.Errorf("want 1 question what the cluster serves, got %d", one.discovery.asked)
			}
			version, err := other.discovery.ServerVersion()
			if err != nil {
				t.Fatal(err)
			}
			version.GitVersion = "v1.35.0"
			if before == inputs(t, generator, other) {
				t.Error("want other inputs for another version")
			}
		})
	}
}

func TestInputsOfAComponentThatIsNotKnown(t *testing.T) {
	t.Parallel()
	generator, cluster := load(t, lookingUp, helm.Options{}), newCluster()
	if !differ(t, generator, cluster) {
		t.Error("want other inputs each time before the first rendering")
	}
	generate(t, generator, cluster, "{}")
	if differ(t, generator, cluster) {
		t.Error("want the same inputs after a rendering")
	}
	cluster.uid = "8"
	if !differ(t, generator, cluster) {
		t.Error("want other inputs each time for a new component of the same name")
	}
}

// differ reports whether the inputs differ each time.
func differ(t *testing.T, generator *helm.Generator, c *cluster) bool {
	t.Helper()
	first := inputs(t, generator, c)
	return first != inputs(t, generator, c)
}

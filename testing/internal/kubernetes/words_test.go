package kubernetes_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// words are what is to be had when values are drawn.
type words struct {
	// constants are the values of the constants of a type of strings.
	constants map[string][]string
	// used are the values that samples have.
	used map[reflect.Type][]reflect.Value
}

// newWords reads the constants of k8s.io/api.
func newWords(t testing.TB, samples []client.Object) words {
	t.Helper()
	w := words{map[string][]string{}, map[reflect.Type][]reflect.Value{}}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatalf("go list does not find k8s.io/api: %v", err)
	}
	root := strings.TrimSpace(string(dir))
	files, err := filepath.Glob(filepath.Join(root, "*", "v*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("k8s.io/api has no files (%v), want some", err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		rel, _ := filepath.Rel(root, filepath.Dir(name))
		w.addConstants(file, "k8s.io/api/"+filepath.ToSlash(rel))
	}
	for _, sample := range samples {
		for _, s := range sites(reflect.ValueOf(sample).Elem(), nil) {
			if !s.value.IsZero() {
				w.used[s.value.Type()] = append(w.used[s.value.Type()], s.value)
			}
		}
	}
	return w
}

func (w words) addConstants(file *ast.File, path string) {
	for _, decl := range file.Decls {
		decl, ok := decl.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, spec := range decl.Specs {
			spec := spec.(*ast.ValueSpec)
			name, ok := spec.Type.(*ast.Ident)
			if !ok || len(spec.Values) != 1 {
				continue
			}
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
				text, _ := strconv.Unquote(value.Value)
				w.constants[path+"."+name.Name] = append(w.constants[path+"."+name.Name], text)
			}
		}
	}
}

// What values are drawn from, half of it wrong, and by the names of fields, see [drawer.text].
var (
	numbers = []int32{
		-1, 0, 0, 1, 1, 2, 3, 5, 10, 15, 60, 80, 99, 100, 101, 256, 443, 1000, 1024, 1800, 1801, 3600, 8080, 30000,
		30001, 32768, 65535, 65536, 86400, 86401, 100001, 1_000_000_001, math.MaxInt32,
	}
	quantities = []string{"0", "1", "2", "-1", "500m", "1500m", "1Mi", "1Gi", "1.5", "2Gi", "100"}
	shares     = []string{"", "0%", "1%", "25%", "100%", "101%", "-1%", "50", "http", "a-b", "1.5%", "%", "A",
		"toolongaportname"}
	raws  = []string{"{}", `{"a":1}`}
	texts = []string{
		"", "a", "a", "b", "a-b", "a.b", "example.com/a", "example.com", "A", "a_b", "-a", "1", "a b", " a", "$(A)",
		"../a", "/a", "/a/../b", "a/b", "a:b", "*", "None", "default", "10.0.0.1", "fd00::1", "TCP",
		strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 254), "kubernetes.io/a", "true", "v1",
		"apps/v1", "https://a.example/b", "http",
	}
	addresses = []string{
		"10.96.0.1", "10.0.0.1", "192.168.0.1", "fd00::1", "010.0.0.1", "127.0.0.1", "169.254.0.1", "224.0.0.1",
		"0.0.0.0",
		"::1", "10.0.0", "::ffff:10.0.0.1", "None", "a", "",
	}
	textsOf = []struct {
		field  string
		values []string
	}{
		{"cidr", []string{
			"10.0.0.0/8", "10.1.0.0/16", "10.0.0.1/8", "fd00::/8", "fd00:1::/32", "::ffff:10.0.0.0/104", "10.0.0.0",
			"0.0.0.0/0",
			"010.0.0.0/8", "", "a",
		}},
		{"except", []string{"10.1.0.0/16", "10.0.0.0/8", "fd00:1::/32", "11.0.0.0/8", "10.1.0.0", "010.1.0.0/16"}},
		{"sourceranges", []string{"10.0.0.0/8", " 10.0.0.0/8 ", "fd00::/8", "10.0.0.1/8", "10.0.0.0"}},
		{"clusterip", addresses}, {"externalips", addresses}, {"hostip", addresses}, {"address", addresses},
		{"nameservers", addresses}, {"podip", addresses}, {"ip", addresses},
		{"schedule", []string{
			"* * * * *", "0 0 * * *", "*/5 * * * *", "0 0 31 2 *", "60 * * * *", "@daily", "@every 1h", "@never",
			"TZ=UTC 0 0 * * *",
			"CRON_TZ=UTC 0 0 * * *", "0 0 * *", "a", "0 0 ? * MON", "",
		}},
		{"timezone", []string{"UTC", "Local", "local", "Europe/Berlin", "Europe/Nowhere", "utc", "", "../UTC", "EST",
			"Etc/UTC"}},
		{"apiversion", []string{"v1", "apps/v1", "a/b/c", "", "example.com/v1"}},
		{"apigroup", []string{"", "apps", "example.com", "snapshot.storage.k8s.io", "*", "A"}},
		{"verbs", []string{"get", "list", "*", "", "use"}},
		{"kind", []string{"Deployment", "User", "Group", "ServiceAccount", "Role", "ClusterRole", "Pod",
			"PersistentVolumeClaim", "a", "a/b", ""}},
		{"image", []string{"a", "example.com/a:1", " a", ""}},
		{"path", []string{"/", "/a", "/a/b", "/a/../b", "a", "../a", "", "metadata.name", "metadata.labels['a']",
			"metadata.annotations['a']", "spec.nodeName", "status.podIP", "spec.serviceAccountName", "a:b", "/a*"}},
		{"host", []string{"a.example", "*.a.example", "A", "10.0.0.1", "", "*"}},
		{"resource", []string{"cpu", "memory", "limits.cpu", "requests.memory", "pods", "a", "example.com/a",
			"requests.example.com/a", "storage", "ephemeral-storage", "hugepages-2Mi", "limits.ephemeral-storage"}},
		{"limitskey", []string{"cpu", "memory", "a", "example.com/a", "storage", "ephemeral-storage", "hugepages-2Mi"}},
		{"requestskey",
			[]string{"cpu", "memory", "a", "example.com/a", "storage", "ephemeral-storage", "hugepages-2Mi"}},
		{"hardkey", []string{"cpu", "memory", "limits.cpu", "pods", "count/pods", "count/a.b", "a", "example.com/a",
			"requests.storage", "a.storageclass.storage.k8s.io/requests.storage", "services.loadbalancers"}},
		{"divisor", quantities},
		{"topologykey", []string{"kubernetes.io/hostname", "a", "", "a b"}},
		{"key",
			[]string{"a", "b", "example.com/a", "a b", "", "A", "kubernetes.io/metadata.name", "node.kubernetes.io/a"}},
		{"finalizers", []string{"example.com/a", "a", "kubernetes", "foregroundDeletion", "orphan"}},
		{"name", []string{"a", "b", "web", "a-b", "A", "a.b", "", "a_b", "1", "http", strings.Repeat("a", 53),
			strings.Repeat("a", 64)}},
	}
)

package main

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/espalier-dev/espalier/examples/shop/api/v1"
	"github.com/espalier-dev/espalier/plugins"
	"github.com/espalier-dev/espalier/plugins/plugintest"
)

// TestMain runs in the tests, and in the program that plugintest starts.
func TestMain(m *testing.M) {
	plugin, err := newPlugin("key")
	if err != nil {
		panic(err)
	}
	os.Exit(plugintest.Main(m, plugin))
}

func shop(memory int64) *v1.Shop {
	s := &v1.Shop{
		TypeMeta:   metav1.TypeMeta{APIVersion: "shop.example.com/v1", Kind: "Shop"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "books"},
	}
	s.Spec.Database = &v1.Database{MemoryMi: memory}
	return s
}

// password is the one of market/books by the key "key".
const password = "18aaa3eec2e14b6b0def92c88ebe7061df37c1d71081fac69632d7c186eb4289"

func wanted(version string, memory int64) []*plugins.Dependent {
	return []*plugins.Dependent{
		plugins.Owns("password", secretOf("books-database", "password", password)).CreateOnly(),
		plugins.Owns("service", serviceOf("books-database")).Yields("address", "spec", "clusterIP"),
		plugins.Owns("server", serverOf("books-database", version, memory)).After("password"),
	}
}

func TestPostgres(t *testing.T) {
	plugin, err := newPlugin("key")
	if err != nil {
		t.Fatal(err)
	}
	connection := func(url string) *plugins.Dependent {
		return plugins.Owns("connection", secretOf("books-database", "url", url)).Needs("address")
	}
	plugintest.Rows{
		"the address is not known yet": {
			Owner: shop(256), Want: append(wanted("16.2", 256), connection("").Pending()),
		},
		"the address is known": {
			Owner: shop(256), Values: map[string]string{"address": "10.0.0.7"},
			Want: append(wanted("16.2", 256), connection("postgres://app:"+password+"@10.0.0.7:5432/app")),
		},
		"a version, and a size": {
			Owner: shop(512), Version: "15.6", Want: append(wanted("15.6", 512), connection("").Pending()),
		},
		"no size":  {Owner: shop(0), Want: append(wanted("16.2", 256), connection("").Pending())},
		"too much": {Owner: shop(1 << 20), WantProblem: "database.memoryMi is 1048576: give 64 to 65536"},
	}.Run(t, plugin)
}

func TestWithoutKey(t *testing.T) {
	if _, err := newPlugin(""); err == nil || !strings.Contains(err.Error(), keyEnvironment) {
		t.Errorf("the error is %v, want one that names %s", err, keyEnvironment)
	}
}

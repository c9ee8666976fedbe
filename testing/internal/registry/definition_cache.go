package registry

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// compiledDefinition is what is made of the spec of a definition. It never changes.
type compiledDefinition struct {
	defined Type
	errs    field.ErrorList
}

// definitionCache keeps what was compiled, by the encoded spec: the rows of a test table have the same definitions, and
// to compile one takes longer than a row.
type definitionCache struct {
	mu       sync.Mutex
	compiled map[string]func() compiledDefinition
}

// maxCompiled is the number of definitions that are kept. It is more than a test has, and limits the memory of a fuzz
// test.
const maxCompiled = 256

var compiledDefinitions = definitionCache{compiled: map[string]func() compiledDefinition{}}

func (c *definitionCache) get(spec *apiextensionsv1.CustomResourceDefinitionSpec) compiledDefinition {
	// Protocol buffers are the fastest encoding. Their maps are sorted.
	encoded, err := spec.Marshal()
	if err != nil {
		return compiledDefinition{errs: field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}}
	}
	return c.compile(encoded, spec)()
}

// compile returns a function that compiles the spec when it is first called.
func (c *definitionCache) compile(
	encoded []byte, spec *apiextensionsv1.CustomResourceDefinitionSpec,
) func() compiledDefinition {
	c.mu.Lock()
	defer c.mu.Unlock()
	if compile, ok := c.compiled[string(encoded)]; ok {
		return compile
	}
	if len(c.compiled) >= maxCompiled {
		clear(c.compiled)
	}
	complete := completeSpec(spec)
	compile := sync.OnceValue(func() compiledDefinition { return compileDefinition(complete) })
	c.compiled[string(encoded)] = compile
	return compile
}

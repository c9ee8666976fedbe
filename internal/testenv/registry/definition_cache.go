package registry

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// compiledDefinition is what is made of the spec of a definition. It never changes.
type compiledDefinition struct {
	defined Type
	errs    field.ErrorList
}

// definitionCache keeps what was compiled, by the digest of the spec: the rows of a test table have the same
// definitions, and to compile one takes longer than a row.
type definitionCache struct {
	mu       sync.Mutex
	compiled map[[sha256.Size]byte]func() compiledDefinition
}

// maxCompiled is the number of definitions that are kept. It is high for a test and limits the memory of a fuzz test.
const maxCompiled = 256

var compiledDefinitions definitionCache

func (c *definitionCache) get(spec *apiextensionsv1.CustomResourceDefinitionSpec) compiledDefinition {
	encoded, err := json.Marshal(spec)
	if err != nil {
		// A default or an enum that is no JSON is the only cause.
		return compiledDefinition{errs: field.ErrorList{field.Invalid(field.NewPath("spec"), "", err.Error())}}
	}
	key := sha256.Sum256(encoded)
	c.mu.Lock()
	if len(c.compiled) >= maxCompiled {
		c.compiled = nil
	}
	if c.compiled == nil {
		c.compiled = map[[sha256.Size]byte]func() compiledDefinition{}
	}
	compile, ok := c.compiled[key]
	if !ok {
		spec = spec.DeepCopy()
		compile = sync.OnceValue(func() compiledDefinition { return compileDefinition(spec) })
		c.compiled[key] = compile
	}
	c.mu.Unlock()
	return compile()
}

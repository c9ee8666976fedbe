package apis

import "context"

type generationKey struct{}

// StashGeneration returns a context with the metadata.generation of the resource being reconciled. Conditions that are
// managed with it record this generation as the observed one. Zero, the generation of a resource that has none, records
// nothing. Of several, the innermost one counts.
func StashGeneration(ctx context.Context, generation int64) context.Context {
	return context.WithValue(ctx, generationKey{}, generation)
}

// RetrieveGeneration returns the generation that [StashGeneration] put on the context, or zero.
func RetrieveGeneration(ctx context.Context) int64 {
	generation, _ := ctx.Value(generationKey{}).(int64)
	return generation
}

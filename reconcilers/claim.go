package reconcilers

import "context"

// Claim says in the set-up of a tree that only the node of ctx may have what key stands for: a name that it writes
// under, or a field that it sets. A node calls it in SetupWithManager, and returns an error if another node of the tree
// has claimed an equal key. Claim then returns the path of that node, see [RetrievePath], and true. The key must be
// comparable. Use a type of your own, so that keys of other packages are not equal. Outside of the set-up of a root
// nothing is claimed.
func Claim(ctx context.Context, key any) (claimant string, taken bool) {
	claims := contextOf(ctx).claims
	if claims == nil {
		return "", false
	}
	if claimant, taken = claims[key]; !taken {
		claims[key] = RetrievePath(ctx)
	}
	return claimant, taken
}

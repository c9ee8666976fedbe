package sharder

import "testing"

// The shards are those that the sharder itself says, so that an object is where it would be in a cluster.
func TestHashesAreThoseOfTheSharder(t *testing.T) {
	three, two := newHashes("shard-0", "shard-1", "shard-2"), newHashes("shard-2", "shard-0")
	for key, want := range map[string][2]string{
		"apps/Deployment/default/web":   {"shard-0", "shard-0"},
		"/ConfigMap/default/a":          {"shard-2", "shard-2"},
		"/ConfigMap/default/b":          {"shard-2", "shard-2"},
		"/ConfigMap/default/c":          {"shard-1", "shard-0"},
		"example.com/Widget/team-1/one": {"shard-2", "shard-2"},
		"example.com/Widget/team-1/two": {"shard-2", "shard-2"},
		"example.com/Widget/team-2/one": {"shard-1", "shard-0"},
		"example.com/Tenant//blue":      {"shard-1", "shard-0"},
		"example.com/Tenant//d":         {"shard-2", "shard-2"},
		"example.com/Tenant//f":         {"shard-0", "shard-0"},
	} {
		if got := [2]string{three.shard(key), two.shard(key)}; got != want {
			t.Errorf("%s belongs to %s of three shards and to %s of two, want %s and %s",
				key, got[0], got[1], want[0], want[1])
		}
	}
	if got := newHashes().shard("/ConfigMap/default/a"); got != "" {
		t.Errorf("without shards an object belongs to %q, want none", got)
	}
}

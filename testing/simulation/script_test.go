package simulation

import "testing"

// TestLostAnswersToAScript has a user not know whether what was asked for was done. It was, and is a step of the story.
func TestLostAnswersToAScript(t *testing.T) {
	for _, verb := range []string{"create", "update", "delete"} {
		t.Run(verb, func(t *testing.T) {
			const path = "/api/v1/namespaces/default/configmaps/one"
			options := Options{Operator: copies, Plan: Plan{Faults: []Fault{
				{Kind: LosesAnswer, Actor: "user", Verb: verb, Path: path},
			}}}
			Run(t, options, func(w *World) {
				obj := w.Object(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: one}}`)
				all := script{{verb: doCreate, obj: obj}, {verb: doReplace, obj: obj}, {verb: doDelete, obj: nameOf(obj)}}
				var told script
				all.tell(w, &told)
				if len(w.Happened()) != 1 || len(told) != len(all) {
					w.Errorf("%d faults struck, want 1, and these steps are told, want all:\n%s", len(w.Happened()), told.code())
				}
			})
		})
	}
}

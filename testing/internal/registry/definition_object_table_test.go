package registry_test

// call is one write of a custom resource.
type call struct {
	// verb is "create", "update" or "status".
	verb string
	// content is what the object has apart from its type and metadata.
	content string
	// refused says that an API server refuses the call.
	refused bool
}

// gadgetCalls are calls with objects of testdata/definitions/gadgets.yaml, those of a row to one object.
var gadgetCalls = map[string][]call{
	"defaults": {{verb: "create", content: `spec: {owner: me}`}},
	"defaults in nested lists": {{verb: "create", content: `
spec: {owner: me, ports: [{number: 1}, {number: 1, protocol: UDP}], groups: [{name: a, members: [{id: b}, {}]}]}`}},
	"null becomes the default":  {{verb: "create", content: `spec: {owner: me, mode: null, options: null}`}},
	"null of a nullable stays":  {{verb: "create", content: `spec: {owner: me, nickname: null}`}},
	"null without default goes": {{verb: "create", content: `spec: {owner: me, plain: null}`}},
	"unknown fields are removed": {{verb: "create", content: `
spec: {owner: me, other: 1, options: {level: 5, other: 1}, groups: [{name: a, other: 1}]}
other: 1`}},
	"unknown fields are kept": {{verb: "create", content: `
spec: {owner: me, free: {known: 1, other: {deep: [1]}}}`}},
	"embedded resource": {{verb: "create", content: `
spec: {owner: me, template: {apiVersion: v1, kind: Pod, metadata: {name: a, other: 1}, spec: {x: 1}}}`}},
	"embedded resource without kind": {{verb: "create", refused: true, content: `
spec: {owner: me, template: {apiVersion: v1}}`}},
	"embedded resource with a bad name": {{verb: "create", refused: true, content: `
spec: {owner: me, template: {apiVersion: v1, kind: Pod, metadata: {name: a/b, labels: {a: "b c"}}}}`}},
	"integer for int-or-string": {{verb: "create", content: `spec: {owner: me, port: 80}`}},
	"string for int-or-string":  {{verb: "create", content: `spec: {owner: me, port: http}`}},
	"boolean for int-or-string": {{verb: "create", refused: true, content: `
spec: {owner: me, port: true}`}},
	"missing":      {{verb: "create", content: `spec: {}`, refused: true}},
	"missing spec": {{verb: "create", content: `status: {}`, refused: true}},
	"enum":         {{verb: "create", content: `spec: {owner: me, mode: odd}`, refused: true}},
	"pattern":      {{verb: "create", content: `spec: {owner: me, name: A1}`, refused: true}},
	"empty":        {{verb: "create", content: `spec: {owner: ""}`, refused: true}},
	"too long": {{verb: "create", refused: true, content: `
spec: {owner: aaaaaaaaaaaaaaaaaaaaaaaaa}`}},
	"too large": {{verb: "create", content: `spec: {owner: me, max: 101}`, refused: true}},
	"no multiple": {{verb: "create", refused: true, content: `
spec: {owner: me, ratio: 0.7}`}},
	"multiple": {{verb: "create", content: `spec: {owner: me, ratio: 1.5}`}},
	"no time": {{verb: "create", refused: true, content: `
spec: {owner: me, when: today}`}},
	"wrong type": {{verb: "create", refused: true, content: `
spec: {owner: 1, min: a, ports: {}}`}},
	"value of a map": {{verb: "create", refused: true, content: `
spec: {owner: me, labels: {a: toolong}}`}},
	"one of": {{verb: "create", content: `spec: {owner: me, choice: {a: "1"}}`}},
	"more than one of": {{verb: "create", refused: true, content: `
spec: {owner: me, choice: {a: "1", b: "1"}}`}},
	"equal keys": {{verb: "create", refused: true, content: `
spec: {owner: me, ports: [{number: 1}, {number: 1}]}`}},
	"equal items of a set": {{verb: "create", refused: true, content: `
spec: {owner: me, tags: [a, b, a]}`}},
	"too many": {{verb: "create", refused: true, content: `
spec: {owner: me, ports: [{number: 1}, {number: 2}, {number: 3}, {number: 4}, {number: 5}]}`}},
	"rule with message expression": {{verb: "create", content: `spec: {owner: me, min: 10}`, refused: true}},
	"rule with message": {{verb: "create", refused: true, content: `
spec: {owner: me, name: forbidden}`}},
	"rule in a list": {{verb: "create", refused: true, content: `
spec: {owner: me, groups: [{name: a, members: [{id: x}]}]}`}},
	"optional old value": {{verb: "create", refused: true, content: `
spec: {owner: me, token: never}`}},
	"several errors": {{verb: "create", refused: true, content: `
spec: {owner: me, name: A1, max: 101, tags: [a, a]}`}},
	"status is dropped":         {{verb: "create", content: `{spec: {owner: me}, status: {phase: Ready}}`}},
	"invalid status is dropped": {{verb: "create", content: `{spec: {owner: me}, status: {phase: Odd}}`}},
	"generation of an update": {
		{verb: "create", content: `spec: {owner: me}`},
		{verb: "update", content: `spec: {owner: you}`},
		{verb: "update", content: `spec: {owner: you, mode: fast}`},
	},
	"status is kept apart": {
		{verb: "create", content: `spec: {owner: me}`},
		{verb: "status", content: `{spec: {owner: you}, status: {phase: Ready, other: 1, conditions: [{type: a}]}}`},
		{verb: "update", content: `{spec: {owner: me, min: 2}, status: {phase: Pending}}`},
		{verb: "status", content: `{status: {attempts: 2}}`},
		{verb: "status", content: `{spec: {owner: me}}`},
	},
	"invalid status": {
		{verb: "create", content: `spec: {owner: me}`},
		{verb: "status", content: `status: {phase: Odd, attempts: a}`, refused: true},
		{verb: "status", content: `status: {conditions: [{type: a}, {type: a}]}`, refused: true},
		{verb: "status", content: `status: {conditions: [{}]}`, refused: true},
	},
	"status update with an invalid spec": {
		{verb: "create", content: `spec: {owner: me}`},
		{verb: "status", content: `{spec: {owner: 1}, status: {phase: Ready}}`},
	},
	"transition": {
		{verb: "create", content: `spec: {owner: me, class: a}`},
		{verb: "update", content: `spec: {owner: me, class: b}`, refused: true},
		{verb: "update", content: `spec: {owner: you, class: a}`},
	},
	"transition with an optional old value": {
		{verb: "create", content: `spec: {owner: me, token: now}`},
		{verb: "update", content: `spec: {owner: me, token: never}`},
	},
	"invalid update": {
		{verb: "create", content: `spec: {owner: me}`},
		{verb: "update", content: `spec: {owner: me, mode: odd, tags: [a, a]}`, refused: true},
		{verb: "update", content: `spec: {owner: me, min: 10}`, refused: true},
	},
}

// ratchetCalls are calls with objects of testdata/definitions/ratchets.yaml. After the first call of each row the
// definition becomes that of ratchets-strict.yaml, in which the objects are not valid any more.
var ratchetCalls = map[string][]call{
	"unchanged": {
		{verb: "create", content: `spec: {mode: odd, size: 50, note: a}`},
		{verb: "update", content: `spec: {mode: odd, size: 50, note: b}`},
		{verb: "update", content: `spec: {mode: even, size: 50, note: b}`, refused: true},
		{verb: "update", content: `spec: {mode: fast, size: 50, note: b}`},
		{verb: "update", content: `spec: {mode: odd, size: 50, note: b}`, refused: true},
	},
	"rule": {
		{verb: "create", content: `spec: {size: 50, limit: {min: 2, max: 1}}`},
		{verb: "update", content: `spec: {size: 51, limit: {min: 2, max: 1}}`, refused: true},
		{verb: "update", content: `spec: {size: 5, limit: {min: 2, max: 1}}`},
		{verb: "update", content: `spec: {size: 5, limit: {min: 3, max: 1}}`, refused: true},
	},
	"set": {
		{verb: "create", content: `spec: {tags: [a, a]}`},
		{verb: "update", content: `spec: {tags: [a, a, b]}`},
		{verb: "update", content: `spec: {tags: [a, b]}`},
		{verb: "update", content: `spec: {tags: [a, a]}`, refused: true},
	},
	"status": {
		{verb: "create", content: `spec: {mode: odd}`},
		{verb: "status", content: `status: {phase: Ready}`},
		{verb: "status", content: `status: {phase: Odd}`, refused: true},
	},
	"new default": {
		{verb: "create", content: `spec: {note: a}`},
		{verb: "status", content: `status: {phase: Ready}`},
		{verb: "update", content: `spec: {note: b, added: 3}`},
	},
	"new default is no change": {
		{verb: "create", content: `spec: {note: a}`},
		{verb: "update", content: `spec: {note: a}`},
	},
	"removed field": {
		{verb: "create", content: `spec: {gone: a}`},
		{verb: "update", content: `spec: {gone: a}`},
	},
	"required": {
		{verb: "create", content: `spec: {limit: {min: 1}}`},
		{verb: "update", content: `spec: {limit: {min: 1}, note: b}`},
		{verb: "update", content: `spec: {limit: {min: 2}, note: b}`, refused: true},
	},
}

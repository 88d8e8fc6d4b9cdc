package pipeline_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/perdure/perdure/agents/pipeline"
)

// walkCases are pipelines, with the interpreter's actions and results.
var walkCases = []struct {
	name, steps    string
	events         map[string]string
	wantActions    string // one action a line
	wantStepEvents string
	wantState      string
	wantCode       string // the code of the failure
}{
	{
		name: "sequence with outputs",
		steps: `
steps:
  - {name: plan, agent: {instructions: x}, input: "Plan for ${input.text}."}
  - {name: look, tool: search, args: {q: "${steps.plan}", n: 2, all: ["${size(steps.plan)}", "is ${steps.plan}"]}}
  - {name: total, set: {/total: "${steps.look.x + 1}"}}
`,
		events:         map[string]string{"plan": `"abc"`, "look": `{"x":41}`},
		wantActions:    "plan @: Plan for hello.\nlook search{\"all\":[3,\"is abc\"],\"n\":2,\"q\":\"abc\"}",
		wantStepEvents: "+plan -plan +look -look +total -total",
		wantState:      `{"perdure.steps":{"plan":"abc","look":{"x":41}},"total":42}`,
	},
	{
		name: "loop, route and nested steps",
		steps: `
steps:
  - name: critique
    loop:
      max: 5
      until: steps.review.ok
      steps:
        - {name: draft, agent: writer, input: "Round ${round}"}
        - {name: review, tool: review}
  - name: triage
    route:
      - {when: steps.review.ok == false, steps: [{name: never, tool: no}]}
      - {steps: [{name: inner, steps: [{name: last, tool: b}]}]}
`,
		events: map[string]string{"critique/1/review": `{"ok":false}`, "critique/2/review": `{"ok":true}`},
		wantActions: "critique/1/draft @writer: Round 1\ncritique/1/review review{}\ncritique/2/draft @writer: Round 2\n" +
			"critique/2/review review{}\ntriage/inner/last b{}",
		wantStepEvents: "+critique +critique/draft -critique/draft +critique/review -critique/review +critique/draft -critique/draft " +
			"+critique/review -critique/review -critique +triage +triage/inner +triage/inner/last -triage/inner/last -triage/inner -triage",
		wantState: `{"perdure.steps":{"draft":"ok","review":{"ok":true},"last":"ok"}}`,
	},
	{
		name: "branches in a round, and for a failure",
		steps: `
steps:
  - name: rounds
    loop:
      max: 2
      steps:
        - name: rows
          map:
            items: "[10]"
            steps:
              - name: both
                parallel:
                  - {name: left, tool: l, args: {r: "${round}", i: "${item}"}}
                  - {name: again, loop: {max: 2, steps: [{name: right, tool: r, args: {r: "${round}"}}]}}
  - name: broken
    tool: x
    onError:
      steps:
        - name: told
          map: {items: "['a']", steps: [{name: tell, tool: t, args: {why: "${error.code}", to: "${item}"}}]}
`,
		events: map[string]string{"broken": "!no"},
		wantActions: `rounds/1/rows/0/both/left l{"i":10,"r":1}
rounds/1/rows/0/both/again/1/right r{"r":1}
rounds/1/rows/0/both/again/2/right r{"r":2}
rounds/2/rows/0/both/left l{"i":10,"r":2}
rounds/2/rows/0/both/again/1/right r{"r":1}
rounds/2/rows/0/both/again/2/right r{"r":2}
broken x{}
broken~error/told/0/tell t{"to":"a","why":"no"}`,
		wantStepEvents: "+rounds +rounds/rows +both +left -left +again +again/right -again/right +again/right -again/right -again -both -rounds/rows " +
			"+rounds/rows +both +left -left +again +again/right -again/right +again/right -again/right -again -both -rounds/rows -rounds " +
			"+broken +broken/told +tell -tell -broken/told -broken",
		wantState: `{"perdure.steps":{"rows":[{"left":"ok","right":"ok"}],"told":[{"tell":"ok"}]}}`,
	},
	{
		name: "map, nested, with items and an index",
		steps: `
steps:
  - name: rows
    map:
      items: "[10, 20]"
      as: row
      steps:
        - {name: head, tool: h, args: {row: "${row}", at: "${index}"}}
        - name: cells
          map: {items: "['x', 'y']", as: cell, steps: [{name: cell_text, tool: c, args: {t: "${steps.head}${row}${cell}"}}]}
        - {name: tail, tool: t, args: {n: "${size(steps.cells)}", first: "${steps.cells[0].cell_text}"}}
  - {name: sum, tool: s, args: {rows: "${steps.rows.map(r, r.tail)}"}}
`,
		events: map[string]string{"rows/0/tail": `1`, "rows/1/tail": `2`, "rows/1/cells/0/cell_text": `"z"`},
		wantActions: `rows/0/head h{"at":0,"row":10}
rows/0/cells/0/cell_text c{"t":"ok10x"}
rows/0/cells/1/cell_text c{"t":"ok10y"}
rows/0/tail t{"first":"ok","n":2}
rows/1/head h{"at":1,"row":20}
rows/1/cells/0/cell_text c{"t":"ok20x"}
rows/1/cells/1/cell_text c{"t":"ok20y"}
rows/1/tail t{"first":"z","n":2}
sum s{"rows":[1,2]}`,
		wantStepEvents: "+rows +head -head +cells +cell_text -cell_text +cell_text -cell_text -cells +tail -tail " +
			"+head -head +cells +cell_text -cell_text +cell_text -cell_text -cells +tail -tail -rows +sum -sum",
		wantState: `{"perdure.steps":{"rows":[{"head":"ok","cells":[{"cell_text":"ok"},{"cell_text":"ok"}],"tail":1},
				{"head":"ok","cells":[{"cell_text":"z"},{"cell_text":"ok"}],"tail":2}],"sum":"ok"}}`,
	},
	{
		name:           "map of nothing",
		steps:          `steps: [{name: none, map: {items: "[]", steps: [{name: one, tool: o}]}}, {name: n, tool: t, args: {n: "${size(steps.none)}"}}]`,
		wantActions:    `n t{"n":0}`,
		wantStepEvents: "+none -none +n -n",
		wantState:      `{"perdure.steps":{"none":[],"n":"ok"}}`,
	},
	{
		name: "map with onError: continue",
		steps: `
steps:
  - {name: all, map: {items: "['a','b']", onError: continue, steps: [{name: one, tool: o}, {name: two, tool: o}]}}
  - {name: bad, tool: t, args: {n: "${steps.all.filter(a, has(a.error)).size()}", code: "${steps.all[0].error.code}"}}
`,
		events:         map[string]string{"all/0/two": "!broken"},
		wantActions:    "all/0/one o{}\nall/0/two o{}\nall/1/one o{}\nall/1/two o{}\nbad t{\"code\":\"broken\",\"n\":1}",
		wantStepEvents: "+all +one -one +two -two +one -one +two -two -all +bad -bad",
		wantState:      `{"perdure.steps":{"all":[{"one":"ok","error":{"code":"broken","message":"it broke"}},{"one":"ok","two":"ok"}],"bad":"ok"}}`,
	},
	{
		name: "map that fails",
		steps: `
steps:
  - {name: all, map: {items: "['a','b','c']", steps: [{name: one, tool: o}]}}
  - {name: never, tool: t}
`,
		events:         map[string]string{"all/1/one": "!broken"},
		wantActions:    "all/0/one o{}\nall/1/one o{}",
		wantStepEvents: "+all +one -one +one -one -all",
		wantState:      `{"perdure.steps":{"all":[{"one":"ok"},{"error":{"code":"broken","message":"it broke"}},{}]}}`,
		wantCode:       "broken",
	},
	{
		name: "parallel",
		steps: `
steps:
  - name: both
    parallel:
      - {name: web, tool: w, args: {q: "${input.text}"}}
      - {name: db, steps: [{name: find, tool: f}, {name: read, tool: r, args: {what: "${steps.find}"}}]}
  - {name: join, tool: j, args: {a: "${steps.web}", b: "${steps.read}"}}
`,
		events:         map[string]string{"both/web": `1`, "both/db/read": `2`},
		wantActions:    "both/web w{\"q\":\"hello\"}\nboth/db/find f{}\nboth/db/read r{\"what\":\"ok\"}\njoin j{\"a\":1,\"b\":2}",
		wantStepEvents: "+both +web -web +db +db/find -db/find +db/read -db/read -db -both +join -join",
		wantState:      `{"perdure.steps":{"web":1,"find":"ok","read":2,"join":"ok"}}`,
	},
	{
		name: "parallel with onError: continue",
		steps: `
steps:
  - {name: both, parallel: {onError: continue, steps: [{name: web, tool: w}, {name: db, steps: [{name: find, tool: f}]}]}}
  - {name: join, tool: j, args: {why: "${steps.db.error.code} ${has(steps.web.error)}"}}
`,
		events:         map[string]string{"both/db/find": "!gone", "both/web": `{"x":1}`},
		wantActions:    "both/web w{}\nboth/db/find f{}\njoin j{\"why\":\"gone false\"}",
		wantStepEvents: "+both +web -web +db +db/find -db/find -db -both +join -join",
		wantState:      `{"perdure.steps":{"web":{"x":1},"db":{"error":{"code":"gone","message":"it broke"}},"join":"ok"}}`,
	},
	{
		name: "retry and pauses",
		steps: `
steps:
  - {name: call, tool: c, retry: {attempts: 3, interval: 5s, backoff: 3}}
  - {name: group, retry: {attempts: 2}, steps: [{name: a, tool: a}, {name: b, tool: b}]}
`,
		events:      map[string]string{"call": "!x", "call~2": "!x", "group/b": "!y"},
		wantActions: "call c{}\ncall~2 c{}\ncall~3 c{}\ngroup/a a{}\ngroup/b b{}\ngroup~2/a a{}\ngroup~2/b b{}",
		wantStepEvents: "+call -call +call -call +call -call +group +group/a -group/a +group/b -group/b -group " +
			"+group +group/a -group/a +group/b -group/b -group",
		wantState: `{"perdure.steps":{"call":"ok","a":"ok","b":"ok"}}`,
	},
	{
		name: "no attempt left",
		steps: `
steps:
  - {name: call, tool: c, retry: {attempts: 2}}
  - {name: never, tool: n}
`,
		events:         map[string]string{"call": "!x", "call~2": "!z"},
		wantActions:    "call c{}\ncall~2 c{}",
		wantStepEvents: "+call -call +call -call",
		wantState:      `{"perdure.steps":{}}`,
		wantCode:       "z",
	},
	{
		name: "failures with onError",
		steps: `
steps:
  - {name: call, tool: c, onError: continue}
  - {name: other, tool: o, onError: {steps: [{name: instead, tool: i, args: {why: "${error.code}: ${error.message}"}}]}}
  - {name: last, tool: l, when: steps.call.error.code == "x" && !has(steps.other)}
`,
		events:         map[string]string{"call": "!x", "other": "!y"},
		wantActions:    "call c{}\nother o{}\nother~error/instead i{\"why\":\"y: step \\\"other\\\": it broke\"}\nlast l{}",
		wantStepEvents: "+call -call +other +other/instead -other/instead -other +last -last",
		wantState:      `{"perdure.steps":{"call":{"error":{"code":"x","message":"step \"call\": it broke"}},"instead":"ok","last":"ok"}}`,
	},
	{
		name: "skipped",
		steps: `
steps:
  - {name: no, tool: n, when: false}
  - {name: neither, steps: [{name: nor, tool: n}], when: state.missing == true, onError: continue}
  - {name: yes, tool: y, when: '!has(steps.no)'}
`,
		wantActions:    "yes y{}",
		wantStepEvents: "+neither -neither +yes -yes",
		wantState:      `{"perdure.steps":{"neither":{"error":{"code":"invalid_expression","message":"step \"neither\": when: there is no key \"missing\""}},"yes":"ok"}}`,
	},
	{
		name: "approved and rejected",
		steps: `
steps:
  - {name: first, approve: {message: "Publish ${input.text}?", args: {title: "${input.text}!"}}}
  - {name: second, approve: {message: 'Really?'}, onError: continue}
  - {name: third, approve: {message: 'Sure?'}}
  - {name: never, tool: n}
`,
		events:         map[string]string{"second": `{"approved":false,"reason":"no"}`, "third": `{"approved":false}`},
		wantActions:    "first ? Publish hello?{\"title\":\"hello!\"}\nsecond ? Really?{}\nthird ? Sure?{}",
		wantStepEvents: "+first -first +second -second +third -third",
		wantState: `{"perdure.steps":{"first":{"approved":true},"second":{"approved":false,"reason":"no","error":{"code":"rejected",
				"message":"step \"second\" was not approved"}},"third":{"approved":false}}}`,
		wantCode: "rejected",
	},
	{
		name: "compensation in reverse order",
		steps: `
steps:
  - {name: book, tool: book, compensate: {tool: cancel, args: {id: "${steps.book.id}", why: "${error.code}"}}}
  - {name: looked, tool: look}
  - name: rounds
    loop: {max: 2, steps: [{name: pay, tool: pay, compensate: {steps: [{name: refund, tool: refund}]}}]}
  - {name: ship, tool: ship, compensate: {tool: unship}}
`,
		events: map[string]string{"book": `{"id":7}`, "ship": "!lost", "rounds/1/pay~undo/refund": "!stuck"},
		wantActions: "book book{}\nlooked look{}\nrounds/1/pay pay{}\nrounds/2/pay pay{}\nship ship{}\n" +
			"rounds/2/pay~undo/refund refund{}\nrounds/1/pay~undo/refund refund{}\nbook~undo cancel{\"id\":7,\"why\":\"lost\"}",
		wantStepEvents: "+book -book +looked -looked +rounds +rounds/pay -rounds/pay +rounds/pay -rounds/pay -rounds +ship -ship " +
			"+rounds/pay/compensate +rounds/pay/compensate/refund -rounds/pay/compensate/refund -rounds/pay/compensate " +
			"+rounds/pay/compensate +rounds/pay/compensate/refund -rounds/pay/compensate/refund -rounds/pay/compensate " +
			"+book/compensate -book/compensate",
		wantState: `{"perdure.steps":{"book":{"id":7},"looked":"ok","pay":"ok","refund":"ok"}}`,
		wantCode:  "lost",
	},
	{
		name: "compensation of finished branches",
		steps: `
steps:
  - name: all
    map:
      items: "['a','b','c']"
      onError: continue
      steps:
        - {name: hold, tool: h, compensate: {tool: release, args: {what: "${item}", id: "${steps.hold}", why: "${error.code}"}}}
        - {name: check, tool: c}
  - {name: last, tool: l}
`,
		events: map[string]string{"all/1/check": "!no", "last": "!lost", "all/2/hold": `3`},
		wantActions: `all/0/hold h{}
all/0/check c{}
all/1/hold h{}
all/1/check c{}
all/1/hold~undo release{"id":"ok","what":"b","why":"no"}
all/2/hold h{}
all/2/check c{}
last l{}
all/0/hold~undo release{"id":"ok","what":"a","why":"lost"}
all/2/hold~undo release{"id":3,"what":"c","why":"lost"}`,
		wantStepEvents: "+all +hold -hold +check -check +hold -hold +check -check +hold/compensate -hold/compensate +hold -hold +check -check -all " +
			"+last -last +all/compensate +hold/compensate -hold/compensate +hold/compensate -hold/compensate -all/compensate",
		wantState: `{"perdure.steps":{"all":[{"hold":"ok","check":"ok"},{"hold":"ok","error":{"code":"no","message":"it broke"}},
				{"hold":3,"check":"ok"}]}}`,
		wantCode: "lost",
	},
	{
		name: "compensation with the values at the time of the step",
		steps: `
steps:
  - {name: lines, set: {/lines: [a, b]}}
  - name: rounds
    loop:
      max: 2
      steps:
        - {name: pay, tool: pay, compensate: {tool: refund, args: {id: "${steps.pay}", of: "${has(steps.both) ? steps.both[0].take : 0}"}}}
        - name: both
          map:
            items: state.lines
            steps:
              - {name: take, tool: take, compensate: {tool: give, args: {what: "${item}", id: "${steps.take}"}}}
              - {name: parts, map: {items: "[item]", as: part, steps: [{name: cut, tool: cut, compensate: {tool: join, args: {part: "${part}", id: "${steps.cut}"}}}]}}
        - {name: others, set: {/lines: [c]}}
  - {name: last, tool: l}
`,
		events: map[string]string{
			"rounds/1/pay": `1`, "rounds/1/both/0/take": `10`, "rounds/1/both/1/take": `11`, "rounds/1/both/0/parts/0/cut": `100`, "rounds/1/both/1/parts/0/cut": `110`,
			"rounds/2/pay": `2`, "rounds/2/both/0/take": `20`, "rounds/2/both/0/parts/0/cut": `200`, "last": "!lost",
		},
		wantActions: `rounds/1/pay pay{}
rounds/1/both/0/take take{}
rounds/1/both/0/parts/0/cut cut{}
rounds/1/both/1/take take{}
rounds/1/both/1/parts/0/cut cut{}
rounds/2/pay pay{}
rounds/2/both/0/take take{}
rounds/2/both/0/parts/0/cut cut{}
last l{}
rounds/2/both/0/parts/0/cut~undo join{"id":200,"part":"c"}
rounds/2/both/0/take~undo give{"id":20,"what":"c"}
rounds/2/pay~undo refund{"id":2,"of":10}
rounds/1/both/0/parts/0/cut~undo join{"id":100,"part":"a"}
rounds/1/both/0/take~undo give{"id":10,"what":"a"}
rounds/1/both/1/parts/0/cut~undo join{"id":110,"part":"b"}
rounds/1/both/1/take~undo give{"id":11,"what":"b"}
rounds/1/pay~undo refund{"id":1,"of":0}`,
		wantCode: "lost", wantStepEvents: "*", wantState: "*",
	},
	{
		name: "compensation in a map with onError: continue",
		steps: `
steps:
  - name: all
    onError: continue
    map:
      items: "['a', 'b']"
      steps:
        - {name: take, tool: take, compensate: {tool: give, args: {what: "${item}", id: "${steps.take}"}}}
        - {name: parts, onError: continue, map: {items: "[1, 2]", as: part, steps: [{name: cut, tool: cut, compensate: {tool: join, args: {id: "${steps.cut}", of: "${steps.take}"}}}]}}
        - {name: check, tool: check}
  - {name: last, tool: l}
`,
		events: map[string]string{
			"all/0/take": `10`, "all/0/parts/0/cut": `100`, "all/0/parts/1/cut": "!thick", "all/1/take": `20`,
			"all/1/parts/0/cut": "!thick", "all/1/check": "!bad", "last": "!lost",
		},
		wantActions: `all/0/take take{}
all/0/parts/0/cut cut{}
all/0/parts/1/cut cut{}
all/0/check check{}
all/1/take take{}
all/1/parts/0/cut cut{}
all/1/check check{}
all/1/take~undo give{"id":20,"what":"b"}
last l{}
all/0/parts/0/cut~undo join{"id":100,"of":10}
all/0/take~undo give{"id":10,"what":"a"}`,
		wantCode: "lost", wantStepEvents: "*", wantState: `{"perdure.steps":{"all":{"error":{"code":"bad","message":"step \"all\": it broke"}}}}`,
	},
	{
		name: "steps in a row of a branch that failed",
		steps: `
steps:
  - name: all
    parallel:
      onError: continue
      steps:
        - {name: left, steps: [{name: hold, tool: h, compensate: {tool: release}}, {name: check, tool: c}]}
        - {name: right, steps: [{name: keep, tool: k, compensate: {tool: drop}}, {name: fail, tool: f}]}
        - {name: rest, onError: continue, steps: [{name: take, tool: t, compensate: {tool: give}}, {name: lack, tool: l}]}
  - {name: last, tool: l}
`,
		events: map[string]string{"all/right/fail": "!no", "all/rest/lack": "!none", "last": "!lost"},
		wantActions: `all/left/hold h{}
all/left/check c{}
all/right/keep k{}
all/right/fail f{}
all/right/keep~undo drop{}
all/rest/take t{}
all/rest/lack l{}
last l{}
all/left/hold~undo release{}
all/rest/take~undo give{}`,
		wantStepEvents: "+all +left +left/hold -left/hold +left/check -left/check -left +right +right/keep -right/keep +right/fail -right/fail -right " +
			"+right/keep/compensate -right/keep/compensate +rest +rest/take -rest/take +rest/lack -rest/lack -rest -all +last -last " +
			"+all/compensate +left/hold/compensate -left/hold/compensate +rest/take/compensate -rest/take/compensate -all/compensate",
		wantState: `{"perdure.steps":{"hold":"ok","check":"ok","keep":"ok","right":{"error":{"code":"no","message":"it broke"}},
				"take":"ok","rest":{"error":{"code":"none","message":"it broke"}}}}`,
		wantCode: "lost",
	},
	{
		name: "branches that ended before another failed",
		steps: `
steps:
  - name: both
    parallel:
      - {name: left, steps: [{name: hold, tool: h, compensate: {tool: release}}]}
      - {name: right, tool: r}
`,
		events:      map[string]string{"both/right": "!no"},
		wantActions: "both/left/hold h{}\nboth/right r{}\nboth/left/hold~undo release{}",
		wantStepEvents: "+both +left +left/hold -left/hold -left +right -right -both " +
			"+both/compensate +left/hold/compensate -left/hold/compensate -both/compensate",
		wantState: `{"perdure.steps":{"hold":"ok","right":{"error":{"code":"no","message":"it broke"}}}}`,
		wantCode:  "no",
	},
	{
		name: "set",
		steps: `
steps:
  - {name: make, set: {/a: {"b/c": "${[1, 2]}"}, /list: [], /gone: null, "/a/b~1c/0": 5, /list/-: "${state.a[\"b/c\"][0] + 1}"}}
  - {name: patch, set: [{op: copy, from: /a, path: /b}, {op: test, path: /list/0, value: 6}, {op: move, from: /a, path: /c}, {path: /nil, value: "${null}"}]}
  - {name: bad, onError: continue, set: [{path: /d, value: 1}, {op: test, path: /d, value: 2}]}
`,
		wantStepEvents: "+make -make +patch -patch +bad -bad",
		wantState:      `{"b":{"b/c":[5,2]},"c":{"b/c":[5,2]},"list":[6],"nil":null,"perdure.steps":{"bad":{"error":{"code":"invalid_patch","message":"step \"bad\": set[1] does not apply at /d"}}}}`,
	},
	{
		name: "set at computed paths",
		steps: `
steps:
  - {name: make, set: {/list: [a, b, c], /at: 1, /name: "x/y", "/by/${state.name}/${state.at}": 5, "/new/list/-": 6}}
  - {name: drop, set: [{op: remove, path: "/list/${state.at}"}, {op: copy, from: "/list/${state.at}", path: "/copied${state.at}"}]}
  - {name: whole, onError: continue, set: {"/${state.list}": 1}}
  - {name: empty, onError: continue, set: {"/a${state.at}/${''}": 1}}
  - {name: outputs, onError: continue, set: {"/${'perdure.' + 'steps'}/x": 1}}
`,
		wantStepEvents: "+make -make +drop -drop +whole -whole +empty -empty +outputs -outputs",
		wantState: `{"at":1,"by":{"x/y":{"1":5}},"copied1":"c","list":["a","c"],"name":"x/y","new":{"list":[6]},"perdure.steps":{` +
			`"empty":{"error":{"code":"invalid_expression","message":"step \"empty\": set[0]: the path \"/a${state.at}/${''}\" has an empty or too long part"}},` +
			`"outputs":{"error":{"code":"invalid_expression","message":"step \"outputs\": set[0]: the path \"/${'perdure.' + 'steps'}/x\" is in /perdure.steps, which has the outputs of steps"}},` +
			`"whole":{"error":{"code":"invalid_expression","message":"step \"whole\": set[0]: a part of the path is a list, not a text or a whole number"}}}}`,
	},
	{
		name:           "loop without a wait",
		steps:          `steps: [{name: a, loop: {max: 1000, steps: [{name: b, loop: {max: 1000, steps: [{name: c, set: {/n: "${round}"}}]}}]}}]`,
		wantCode:       "limit_steps",
		wantStepEvents: "*", wantState: "*",
	},
	{
		name:           "too many items",
		steps:          `steps: [{name: a, map: {items: "state.list", steps: [{name: b, tool: t}]}}]`,
		wantCode:       "invalid_expression",
		wantStepEvents: "+a -a", wantState: `{"perdure.steps":{}}`,
	},
}

func TestRunsOfStepTrees(t *testing.T) {
	t.Parallel()
	for _, tt := range walkCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, tt.steps)
			f.eventOf = eventsByPath(tt.events)
			failure := f.run()
			code := ""
			if failure != nil {
				code = failure.Code
			}
			if code != tt.wantCode {
				t.Errorf("ended with %+v, want %q", failure, tt.wantCode)
			}
			if diff := cmp.Diff(tt.wantActions, strings.Join(f.executedActions, "\n")); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.wantStepEvents, strings.Join(f.stepEvents, " ")); diff != "" && tt.wantStepEvents != "*" {
				t.Errorf("step events (-want +got):\n%s", diff)
			}
			if tt.wantState == "*" {
				return
			}
			if diff := cmp.Diff(decodeJSON(t, tt.wantState), decodeJSON(t, string(f.state))); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTreeBeginsAfterStep: a tree begins after a step that another run has finished, and keeps the
// outputs of that run. Without a step after it the tree ends.
func TestTreeBeginsAfterStep(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - {name: a, tool: one, compensate: {tool: undo}}
  - {name: b, loop: {max: 2, steps: [{name: c, tool: two}]}}
  - {name: d, tool: three, args: {x: "${string(steps.a)}"}}
`
	for after, want := range map[string]string{"a": "b/1/c b/2/c d", "b": "d", "d": ""} {
		f := setup(t, steps)
		f.after, f.state = after, json.RawMessage(`{"mine":1,"perdure.steps":{"a":"before"}}`)
		f.eventOf = eventsByPath(map[string]string{"d": "!broken"})
		f.run() // its failure does not compensate for a, which this run has not done
		var paths []string
		for _, action := range f.executedActions {
			paths = append(paths, strings.Fields(action)[0])
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("after %s: actions = %q, want %q", after, got, want)
		}
		if !strings.Contains(string(f.state), `"a":"before"`) {
			t.Errorf("after %s: state = %s, want the output of the run before", after, f.state)
		}
	}
	f := setup(t, steps)
	for _, after := range []string{"unknown", "b/c", "b/0/c", "b/1", "b/1/d", "a/c", "b/1/c/e", ""} {
		if after != "" && pipeline.HasStepAt(f.definition, after) {
			t.Errorf("HasStepAt(%q) = true, want false", after)
		}
		_, err := pipeline.Advance(f.definition, pipeline.TreePosition{After: after}, pipeline.Event{Kind: pipeline.EventBegun}, pipeline.Env{State: f.state})
		if (after != "") != errors.Is(err, pipeline.ErrPosition) {
			t.Errorf("after the unknown step %q: got %v, want ErrPosition", after, err)
		}
	}
}

// TestTreeBeginsInOtherSteps: for each step that has a path after which a tree may begin, the tree
// that begins there makes the same actions as the one that has finished the step.
func TestTreeBeginsInOtherSteps(t *testing.T) {
	t.Parallel()
	const steps = `
steps:
  - name: work
    timeout: 1h
    steps:
      - {name: a, tool: one, retry: {attempts: 2, interval: 1s}}
      - name: again
        loop:
          max: 3
          until: "round == 2"
          steps:
            - {name: c, tool: two, args: {r: "${string(round)}"}}
            - {name: no, when: "false", tool: one}
            - {name: s, set: {/round: "${round}"}}
      - name: choose
        route:
          - {when: "false", steps: [{name: x, tool: one}]}
          - {steps: [{name: y, tool: one}, {name: z, tool: one}]}
      - {name: fails, tool: one, onError: {steps: [{name: repairs, tool: one}]}}
      - {name: all, parallel: [{name: left, tool: one}, {name: right, tool: one}]}
  - {name: last, tool: three}
`
	whole := setup(t, steps)
	whole.eventOf = eventsByPath(map[string]string{"work/fails": "!broken", "work/a": "!busy"})
	whole.run()
	want := []string{"work/a", "work/again/1/c", "work/again/1/s", "work/again/2/c", "work/again/2/s", "work/again", "work/choose/y", "work/choose/z", "work/choose", "work/all", "work", "last"}
	var paths []string
	for _, begin := range whole.begins {
		paths = append(paths, begin.path)
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Fatalf("paths (-want +got):\n%s", diff)
	}
	for _, begin := range whole.begins {
		f := setup(t, steps)
		f.eventOf = eventsByPath(map[string]string{"work/fails": "!broken"})
		f.after, f.state = begin.path, begin.state
		if !pipeline.HasStepAt(f.definition, begin.path) {
			t.Errorf("HasStepAt(%q) = false, want true", begin.path)
		}
		f.run()
		if diff := cmp.Diff(whole.executedActions[begin.actions:], f.executedActions, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("actions after %s (-want +got):\n%s", begin.path, diff)
		}
		if diff := cmp.Diff(decodeJSON(t, string(whole.state)), decodeJSON(t, string(f.state))); diff != "" {
			t.Errorf("state after %s (-want +got):\n%s", begin.path, diff)
		}
	}
}

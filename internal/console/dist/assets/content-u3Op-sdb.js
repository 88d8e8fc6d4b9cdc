function e({content:e}){return typeof e==`string`?e:Array.isArray(e)?e.flatMap(({type:e,text:t})=>e===`text`&&t!==void 0?[t]:[]).join(`
`):``}export{e as t};
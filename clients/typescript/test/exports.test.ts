import { textOf } from "@perdure/client";
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const entries = ["index", "store/index", "react/index"].map((name) => fileURLToPath(new URL(`../dist/${name}.d.ts`, import.meta.url)));

test("every export, and every member of the exported classes, has a comment", () => {
  const program = ts.createProgram(entries, { module: ts.ModuleKind.NodeNext, skipLibCheck: true });
  const checker = program.getTypeChecker();
  const isDocumented = (symbol: ts.Symbol) => symbol.getDocumentationComment(checker).length > 0;
  const missing: string[] = [];
  let found = 0;
  for (const entry of entries) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(entry)!)!;
    for (const exported of checker.getExportsOfModule(module)) {
      found++;
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
      if (!isDocumented(symbol)) missing.push(symbol.name);
      if (!(symbol.flags & ts.SymbolFlags.Class)) continue;
      for (const member of symbol.members?.values() ?? []) {
        const declaration = member.declarations?.[0];
        const isHidden = !declaration || ts.getCombinedModifierFlags(declaration) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected);
        const isOwn = member.flags & (ts.SymbolFlags.Method | ts.SymbolFlags.Accessor | ts.SymbolFlags.Property) && !member.name.startsWith("__");
        // The name of an error needs no comment.
        if (!isHidden && isOwn && member.name !== "name" && !isDocumented(member)) missing.push(`${symbol.name}.${member.name}`);
      }
    }
  }
  assert.ok(found > 50, `${found} exports`);
  assert.deepEqual(missing, []);
});

test("the text of a message is that of its text parts", () => {
  const image = { type: "image", source: { type: "url", value: "https://example.com/cat.png" } };
  assert.equal(textOf({ content: "Hello" }), "Hello");
  assert.equal(textOf({ content: [{ type: "text", text: "Look:" }, image, { type: "text", text: "a cat" }] }), "Look:\na cat");
  for (const content of [undefined, null, [], [image], { a: 1 }]) assert.equal(textOf({ content }), "");
});

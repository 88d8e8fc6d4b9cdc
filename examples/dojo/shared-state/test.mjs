/** Waits until a field has a value. */
function has(field, value) {
  const waits = (element, value) => new Promise((resolve) => {
    const check = () => (element.value === value ? resolve() : requestAnimationFrame(check));
    check();
  });
  return field.evaluate(waits, value);
}

export default async function test({ page, url, say, reads }) {
  const recipe = page.getByRole("form", { name: "Recipe" });
  const [title, ingredients, steps] = ["Title", "Ingredients", "Steps"].map((name) => recipe.getByRole("textbox", { name }));

  await page.goto(url);
  await ingredients.fill("500 g flour\n300 g water");
  await say("Improve the recipe.");
  await reads("I added salt.");
  await has(ingredients, "500 g flour\n300 g water\na pinch of salt");
  await has(steps, "Salt the dough.");

  await steps.fill("Salt the dough.\nBake it.");
  await say("Use the title Rye bread.");
  await reads("The title is Rye bread.");
  await page.reload();
  await has(title, "Rye bread");
  await has(steps, "Salt the dough.\nBake it.");
}

import { useThread } from "@perdure/client/react";
import { useState } from "react";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

interface Recipe {
  title?: string;
  ingredients?: string[];
  steps?: string[];
}

interface State {
  recipe?: Recipe;
}

const options = { agent: "shared-state", threadId: threadId() };

/** The form of a recipe. A list has a line for each entry. */
function RecipeForm({ recipe, isDisabled, change }: { recipe: Recipe; isDisabled: boolean; change: (part: Recipe) => void }) {
  const lines = (text: string) => (text === "" ? [] : text.split("\n"));
  return (
    <form aria-label="Recipe" onSubmit={(event) => event.preventDefault()}>
      <fieldset disabled={isDisabled}>
        <label>Title <input value={recipe.title ?? ""} onChange={(event) => change({ title: event.target.value })} /></label>
        <label>Ingredients <textarea rows={4} value={recipe.ingredients?.join("\n") ?? ""} onChange={(event) => change({ ingredients: lines(event.target.value) })} /></label>
        <label>Steps <textarea rows={4} value={recipe.steps?.join("\n") ?? ""} onChange={(event) => change({ steps: lines(event.target.value) })} /></label>
      </fieldset>
    </form>
  );
}

function SharedState() {
  const thread = useThread<State>(client, options);
  const [edits, setEdits] = useState<Recipe>({}); // since the last message
  const isRunning = thread.run.status === "running";
  const recipe = { ...thread.state?.recipe, ...edits };
  const state = Object.keys(edits).length > 0 ? { ...thread.state, recipe } : undefined;
  return (
    <Page>
      <RecipeForm recipe={recipe} isDisabled={isRunning} change={(part) => setEdits({ ...edits, ...part })} />
      <Transcript messages={thread.messages} tools={{ update_state: () => null }} />
      <Composer thread={thread} state={state} onSend={() => setEdits({})} suggestions={["Improve the recipe.", "Use the title Rye bread."]} />
    </Page>
  );
}

show(<SharedState />);

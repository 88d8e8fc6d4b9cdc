/**
 * Returns what the default export of a test.mjs in examples/dojo receives:
 *
 *   page        a page of Playwright, which has not opened the URL
 *   url         the URL of the feature's page, with a thread of its own
 *   say(text)   sends a message
 *   reads(text, options) waits until the conversation has the text. The options are those of Playwright's waitFor
 *   watch(selector) records each text of the first element that the selector finds, until the page reloads. It returns
 *               a function that returns the texts
 */
export function fixtureOf(page, url) {
  const say = async (text) => {
    await page.getByRole("textbox", { name: "Message" }).fill(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
  };
  const reads = (text, options) => page.getByRole("log").getByText(text).last().waitFor(options);
  const watch = async (selector) => {
    const texts = await page.evaluateHandle((selector) => {
      const texts = [];
      const record = () => {
        const text = document.querySelector(selector)?.textContent;
        if (text !== undefined && text !== texts.at(-1)) texts.push(text);
      };
      new MutationObserver(record).observe(document, { subtree: true, childList: true, characterData: true });
      return texts;
    }, selector);
    return () => texts.jsonValue();
  };
  return { page, url, say, reads, watch };
}

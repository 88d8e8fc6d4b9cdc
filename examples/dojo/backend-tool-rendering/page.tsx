import { useThread } from "@perdure/client/react";
import { type Call, parsed } from "../chat/calls";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

const options = { agent: "backend-tool-rendering", threadId: threadId() };

/** Draws a call of get_weather: first its arguments, then its result. */
function WeatherCard({ args, result }: Call) {
  if (result === undefined) return <div className="card">Looking at the sky over {args?.city ?? "…"}</div>;
  const weather = parsed(result);
  if (!weather) return <div className="card" role="alert">{result}</div>; // the tool has failed
  return (
    <section className="card" aria-label={`Weather in ${weather.city}`}>
      <strong>{weather.city}</strong>
      <span>{weather.celsius} °C, {weather.conditions}</span>
      <span>Wind: {weather.wind} km/h</span>
    </section>
  );
}

function BackendToolRendering() {
  const thread = useThread(client, options);
  return (
    <Page>
      <Transcript messages={thread.messages} tools={{ get_weather: WeatherCard }} />
      <Composer thread={thread} suggestions={["What is the weather in Lisbon?", "What is the weather in Bergen?"]} />
    </Page>
  );
}

show(<BackendToolRendering />);

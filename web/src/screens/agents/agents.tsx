import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Agents() {
  return (
    <Page title="Agents">
      <Empty title="Nothing here yet" />
    </Page>
  );
}

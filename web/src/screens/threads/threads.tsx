import { Empty, Page } from "../../components/page";

/** The screen. */
export default function Threads() {
  return (
    <Page title="Threads">
      <Empty title="Nothing here yet" />
    </Page>
  );
}

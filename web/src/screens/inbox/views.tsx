import { type FormEvent, useState } from "react";
import { Link } from "wouter";
import { announce } from "../../components/announcer";
import { Button, IconButton } from "../../components/button";
import { Dialog, DialogActions } from "../../components/dialog";
import { Field } from "../../components/field";
import { CloseIcon } from "../../components/icons";
import { paths } from "../../paths";
import { defaultViews, type Filter, queryOf, savedViews, saveViews, type View } from "./inbox_filter";
import styles from "./views.module.css";

/** Properties of Views. */
export interface ViewsProps {
  filter: Filter;
  /** Returns the number of approvals of a view, if it is known. */
  countOf: (filter: Filter) => number | undefined;
}

/** The views of the inbox as links, and what saves the current filter as another one. */
export function Views({ filter, countOf }: ViewsProps) {
  const [saved, setSaved] = useState(savedViews);
  const [isNaming, setNaming] = useState(false);
  const query = queryOf(filter);
  const change = (views: View[]) => {
    saveViews(views);
    setSaved(views);
  };
  const isKnown = [...defaultViews, ...saved].some((view) => queryOf(view.filter) === query);
  const remove = (view: View) => {
    change(saved.filter((other) => other !== view));
    announce(`Deleted the view ${view.name}`);
  };
  return (
    <nav aria-label="Views" className={styles.views}>
      <ul>
        {defaultViews.map((view) => <Tab key={view.name} view={view} query={query} count={countOf(view.filter)} />)}
        {saved.map((view) => <Tab key={view.name} view={view} query={query} count={countOf(view.filter)} onRemove={() => remove(view)} />)}
      </ul>
      {!isKnown && <Button kind="quiet" onPress={() => setNaming(true)}>Save view</Button>}
      <NameDialog
        isOpen={isNaming}
        onClose={() => setNaming(false)}
        onSave={(name) => {
          change([...saved.filter((view) => view.name !== name), { name, filter }]);
          setNaming(false);
          announce(`Saved the view ${name}`);
        }}
      />
    </nav>
  );
}

function Tab({ view, query, count, onRemove }: { view: View; query: string; count: number | undefined; onRemove?: () => void }) {
  const isCurrent = queryOf(view.filter) === query;
  return (
    <li className={styles.tab} data-current={isCurrent || undefined}>
      <Link href={paths.inbox + queryOf(view.filter)} aria-current={isCurrent ? "page" : undefined}>
        {view.name}
        {count !== undefined && <span className={styles.count}>{count}</span>}
      </Link>
      {isCurrent && onRemove && <IconButton label={`Delete the view ${view.name}`} onPress={onRemove}><CloseIcon /></IconButton>}
    </li>
  );
}

function NameDialog({ isOpen, onClose, onSave }: { isOpen: boolean; onClose: () => void; onSave: (name: string) => void }) {
  const [name, setName] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() === "") return;
    onSave(name.trim());
    setName("");
  };
  return (
    <Dialog title="Save the filter as a view" isOpen={isOpen} onClose={onClose}>
      <form className={styles.form} onSubmit={submit}>
        <Field label="Name" value={name} onChange={setName} autoFocus hint="This browser keeps it." />
        <DialogActions>
          <Button onPress={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" isDisabled={name.trim() === ""}>Save</Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}

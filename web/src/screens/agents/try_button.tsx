import type { Agent } from "@perdure/client";
import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { Button } from "../../components/button";
import { Dialog } from "../../components/dialog";
import { PlayIcon } from "../../components/icons";
import { Problem } from "../../components/problem";
import { paths } from "../../paths";
import { useClient } from "../../session";

/** Stores a draft without publishing it, and opens a chat with it. */
export function TryButton({ agent: { name, scope }, text, isDisabled }: { agent: Agent; text: string; isDisabled: boolean }) {
  const client = useClient();
  const [, navigate] = useLocation();
  const store = useMutation({
    mutationFn: () => client.draftAgent(name, text, { scope }),
    onSuccess: ({ revision }) => navigate(`${paths.newChat(name)}?revision=${encodeURIComponent(revision)}`),
  });
  return (
    <>
      <Button isDisabled={isDisabled || store.isPending} onPress={() => store.mutate()}><PlayIcon />Try draft</Button>
      <Dialog title="The draft cannot be tried" isOpen={store.isError} onClose={() => store.reset()}><Problem error={store.error} /></Dialog>
    </>
  );
}

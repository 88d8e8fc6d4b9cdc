import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Problem } from "../../components/problem";
import { safeText } from "../../components/safe_text";
import { useClient } from "../../session";
import styles from "./content_view.module.css";

/** The types of images that the page shows. */
export const shownImages = /^image\/(png|jpeg|gif|webp|avif)$/;

/** Returns the ID of a file in its URL, or undefined if the URL is not that of a file of this server. */
export const idOfFile = (url: string) => /^\/v1\/files\/(file_[a-z0-9]+)$/.exec(url)?.[1];

/** A file of the server: an image is shown, and others can be downloaded. */
export function StoredFile({ id, name, mediaType }: { id: string; name: string; mediaType: string }) {
  const client = useClient();
  const isImage = shownImages.test(mediaType);
  const [error, setError] = useState<unknown>();
  // The page loads the bytes itself, because a link has no token.
  const image = useQuery({ queryKey: ["file", id], queryFn: ({ signal }) => client.openFile(id, { signal }), enabled: isImage, staleTime: Infinity });
  const address = useObjectURL(image.data);
  const download = async () => {
    setError(undefined);
    try {
      save(await client.openFile(id), name);
    } catch (reason) {
      setError(reason);
    }
  };
  if (address !== undefined) return <img className={styles.image} src={address} alt={safeText(name)} />;
  return (
    <div className={styles.medium}>
      <button type="button" className={styles.download} onClick={() => void download()}>{safeText(name)}</button>
      <span className="muted">{safeText(mediaType)}</span>
      {(error ?? image.error) != null && <Problem error={error ?? image.error} />}
    </div>
  );
}

/** Returns the address of a blob in this page, which it has as long as the component is shown. */
export function useObjectURL(blob: Blob | undefined): string | undefined {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    if (!blob) return undefined;
    const created = URL.createObjectURL(blob);
    setAddress(created);
    return () => {
      setAddress(undefined);
      URL.revokeObjectURL(created);
    };
  }, [blob]);
  return address;
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([blob], { type: "application/octet-stream" })); // never shown in the page
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

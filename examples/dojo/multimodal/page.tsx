import type { ImagePart, Message } from "@ag-ui/client";
import { textOf } from "@perdure/client";
import { useThread } from "@perdure/client/react";
import { type ChangeEvent, useState } from "react";
import { Composer } from "../chat/Composer";
import { Page, show } from "../chat/Page";
import { client, threadId } from "../chat/thread";
import { Transcript } from "../chat/Transcript";

const options = { agent: "multimodal", threadId: threadId() };

/** Reads a file into a part of a message, which carries its bytes in base64. */
function imageFrom(file: File): Promise<ImagePart> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const [, value] = String(reader.result).split(",", 2); // data:image/png;base64,…
      resolve({ type: "image", source: { type: "data", value, mimeType: file.type } });
    };
    reader.readAsDataURL(file);
  });
}

/** Shows an image of a message. A source of the type file is known only to the provider of a model. */
function Picture({ source }: ImagePart) {
  if (source.type === "file") return <em>Attached image</em>;
  return <img className="picture" alt="Attached image" src={source.type === "url" ? source.value : `data:${source.mimeType};base64,${source.value}`} />;
}

/** Shows a user message with its images. */
function withImages(message: Message) {
  if (message.role !== "user" || typeof message.content === "string") return undefined;
  const images = message.content.filter((part) => part.type === "image");
  return <>{images.map((part, index) => <Picture key={index} {...part} />)}{textOf(message)}</>;
}

function Multimodal() {
  const thread = useThread(client, options);
  const [image, setImage] = useState<ImagePart>();
  const [error, setError] = useState("");
  const attach = ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0];
    target.value = ""; // so that the user can choose the same file again
    setError("");
    if (file) imageFrom(file).then(setImage, (reason) => setError(reason.message));
  };
  return (
    <Page>
      <Transcript messages={thread.messages} render={withImages} />
      <Composer thread={thread} suggestions={["What is in this image?"]} attachments={image && [image]} onSend={() => setImage(undefined)}>
        <label>Attach an image <input type="file" accept="image/png, image/jpeg, image/gif, image/webp" onChange={attach} /></label>
        {error && <p role="alert">{error}</p>}
        {image && (
          <div className="buttons">
            <Picture {...image} />
            <button type="button" onClick={() => setImage(undefined)}>Remove</button>
          </div>
        )}
      </Composer>
    </Page>
  );
}

show(<Multimodal />);

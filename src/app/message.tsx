/** A text that a person sends. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Problem } from './parts.js';

interface MessageProps {
  label: string;
  hint?: string;
  action: string;
  send: (message: string) => Promise<unknown>;
}

/** A text to send; it is empty again when it was taken. */
export function Message({ label, hint, action, send }: MessageProps) {
  const [message, setMessage] = useState('');
  const sending = useMutation({ mutationFn: send, onSuccess: () => setMessage('') });
  const submit = () => {
    if (message.trim() !== '' && !sending.isPending) sending.mutate(message);
  };
  return (
    <form
      className="card message"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <label>
        {label}
        <textarea
          rows={3}
          value={message}
          placeholder={hint}
          onChange={(event) => setMessage(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
          }}
        />
      </label>
      {sending.isError ? <Problem error={sending.error} /> : null}
      <div className="row end">
        <button className="primary" disabled={sending.isPending || message.trim() === ''}>
          {action}
        </button>
      </div>
    </form>
  );
}

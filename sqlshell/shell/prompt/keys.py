"""Keys: Enter ends a complete text and otherwise breaks the line."""

from __future__ import annotations

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from sqlshell.sql.scanner import complete


def bindings() -> KeyBindings:
    """The shell's own keys beside prompt_toolkit's."""
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def submit(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys

"""Chat templates: conversations as prompts, rendered in jinja2's sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from irload.errors import InputInvalid, Unsupported
from irload.text.folder import Folder

Message = Mapping[str, Any]
"""A turn of a conversation: `role` (system, user or assistant) and `content`."""


def rendered(folder: Folder, messages: Sequence[Message]) -> str:
    """The prompt for the next turn of the assistant.

    Raises InputInvalid for a folder without a template, and for a template that fails or rejects the messages.
    """
    template = require_template(folder, "use generate")
    try:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise Unsupported("chat templates require jinja2, which is not installed; pip install 'irload[text]'") from None
    environment: Any = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _now
    try:
        return environment.from_string(template).render(
            messages=list(messages),
            add_generation_prompt=True,
            bos_token=special(folder, "bos_token"),
            eos_token=special(folder, "eos_token"),
            tools=None,
        )
    except _Refused as error:
        raise InputInvalid(f"the chat template of {folder.path} rejects the messages: {error}") from None
    except (jinja2.TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise InputInvalid(f"the chat template of {folder.path} fails: {type(error).__name__}: {error}") from None


def require_template(folder: Folder, remedy: str) -> str:
    """The chat template of a folder. Raises InputInvalid with this remedy if there is no template."""
    if folder.template is None:
        raise InputInvalid(
            f"{folder.path} has no chat template (chat_template.jinja or tokenizer_config.json); {remedy}"
        )
    return folder.template


def special(folder: Folder, name: str) -> str:
    """A special token of tokenizer_config.json, or an empty text."""
    token = folder.tokenizer.get(name)
    if isinstance(token, dict):
        token = cast(dict[str, Any], token).get("content")
    return token if isinstance(token, str) else ""


class _Refused(Exception):
    """A template called raise_exception."""


def _refuse(message: object) -> NoReturn:
    raise _Refused(str(message))


def _now(form: str) -> str:
    from datetime import datetime

    return datetime.now().astimezone().strftime(form)


def _json(value: object, indent: int | None = None) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, indent=indent)

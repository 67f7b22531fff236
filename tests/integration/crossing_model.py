# SPDX-License-Identifier: Apache-2.0
"""What may cross into a sandbox, said a second time from the issue's own words, for random runs."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from .stub_broker import PROJECT, VARIABLES

SECRET_NAMES = ["API_TOKEN", "MY_SECRET", "DB_PASSWORD", "GEMINI_API_KEY", "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_API_KEY", "HTTPS_PROXY",
                "http_proxy", "NO_PROXY", "no_proxy", "PLAIN", "SESSION_KEY"]
DENIED = ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_OAUTH_ACCESS_TOKEN", "SSH_AUTH_SOCK",
          "GITHUB_TOKEN", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "AZURE_CLIENT_SECRET",
          "ARM_CLIENT_SECRET", "TF_VAR_secret", "CLOUDSDK_AUTH_ACCESS_TOKEN", "DOCKER_HOST",
          "DBUS_SESSION_BUS_ADDRESS"]
OWNED = ["HOME", "KUBECONFIG", "PATH", "GCE_METADATA_HOST", "GCE_METADATA_IP",
         "METADATA_SERVER_DETECTION", "POSTERN_CANARY", "DOCKER_CONFIG"]
KEYED = ["google", "gemini", "anthropic", "openai"]
MARKER = "gcp-vertex-credentials"
# By preset: always, where the model is the cloud's, where a session is open.
PRESETS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "gemini-cli": ({"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GEMINI_CLI_TRUST_WORKSPACE"},
                   {"GOOGLE_GENAI_USE_VERTEXAI"}, set()),
    "claude-code": ({"ANTHROPIC_VERTEX_PROJECT_ID", "CLOUD_ML_REGION"},
                    {"CLAUDE_CODE_USE_VERTEX"}, set()),
    "openclaw": ({"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}, set(),
                 {"GOOGLE_CLOUD_API_KEY", "ANTHROPIC_VERTEX_USE_GCP_METADATA"}),
    "antigravity": ({"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"}, set(), {"AGY_ADC_AUTH"}),
    "opencode": ({"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION"},
                 set(), set()),
    "generic": ({"GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "ANTHROPIC_VERTEX_PROJECT_ID",
                 "CLOUD_ML_REGION"}, {"GOOGLE_GENAI_USE_VERTEXAI"}, set()),
}
ROUTING = ["GOOGLE_CLOUD_LOCATION", "GCP_VERTEX_LOCATION", "GCP_LOCATION"]
PROJECTS = ["GOOGLE_CLOUD_PROJECT", "GCP_PROJECT_ID", "GCP_PROJECT"]
ENDS = ["", "", "\n", "'", '"', " = ", "$(id)", "\\", "\u00e9", " \t"]


@dataclass
class Case:
    """One run: what the operator has and asks for."""

    engine: str
    environ: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    forced: list[str] = field(default_factory=list)
    provider: str | None = None
    agent: str | None = None
    kubeconfig: bool = False
    attach: str = "gateway"
    extra: list[str] = field(default_factory=list)
    canaries: set[str] = field(default_factory=set)

    def options(self, directory: Path) -> list[str]:
        """Of `postern run`, in one order."""
        made = ["--engine", self.engine, "--attach", self.attach, *self.extra]
        for flag, names in (("--env", self.asked), ("--env-force", self.forced)):
            for name in names:
                made += [flag, name]
        for flag, value in (("--provider", self.provider), ("--agent", self.agent)):
            if value is not None:
                made += [flag, value]
        if self.kubeconfig:
            made += ["--kubeconfig", str(directory / "kubeconfig.json")]
        return made

    @property
    def crossing(self) -> set[str]:
        """Names of the operator's own variables that cross."""
        free = {name for name in self.asked if name not in DENIED}
        return {name for name in free | set(self.forced)
                if name in self.environ and name not in OWNED} | \
            {name for name in self.asked if name in self.forced and name in self.environ
             and name not in OWNED}

    @property
    def session(self) -> bool:
        """Whether one is opened."""
        if self.provider in KEYED:
            return False
        key = self.environ.get("GOOGLE_CLOUD_API_KEY", "").strip()
        keyed = "GOOGLE_CLOUD_API_KEY" in self.crossing and key not in ("", MARKER)
        return not (self.provider == "google-vertex" and keyed)

    @property
    def preset(self) -> set[str]:
        """Names that the preset sets."""
        if self.agent is None:
            return set()
        always, hosted, in_session = PRESETS[self.agent]
        names = set(always)
        if not self.session and not any(self.environ.get(n, "").strip() for n in PROJECTS):
            names -= {"GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"}
        if self.session or self.provider in ("google-vertex", "anthropic-vertex"):
            names |= hosted
        return names | in_session if self.session else names

    @property
    def client(self) -> set[str]:
        """Names that the engine's process has for itself, in every call."""
        if self.engine == "podman":
            return {"PATH", "HOME", "XDG_RUNTIME_DIR"}
        has_host = bool(self.environ.get("DOCKER_HOST", "").strip())
        return {"PATH", "HOME", "DOCKER_CONFIG"} | ({"DOCKER_HOST"} if has_host else set())

    @property
    def run_environ(self) -> set[str]:
        """Names that the process has which starts the container."""
        names = self.client | self.crossing | self.preset
        if self.session:
            names |= set(VARIABLES)
        if self.kubeconfig:
            names |= {"KUBECONFIG", "NO_PROXY", "no_proxy"}
        return names

    @property
    def refused(self) -> set[str]:
        """Names that are asked for in vain."""
        return {name for name in self.asked + self.forced
                if name in OWNED or (name in DENIED and name not in self.forced)}


def _canary(dice: random.Random, case: Case) -> str:
    token = secrets.token_hex(12)
    case.canaries.add(token)
    return dice.choice(ENDS) + token + dice.choice(ENDS)


def _some(dice: random.Random, names: list[str], share: float) -> list[str]:
    return [name for name in names if dice.random() < share]


def draw(dice: random.Random) -> Case:
    """A case that is allowed; what is refused has tests of its own."""
    case = Case(engine=dice.choice(["docker", "podman"]))
    for name in _some(dice, SECRET_NAMES + DENIED + ["KUBECONFIG", "POSTERN_CANARY",
                                                     "GCE_METADATA_HOST", "DOCKER_CONFIG"], 0.6):
        case.environ[name] = _canary(dice, case)
    if "DOCKER_HOST" in case.environ:
        case.environ["DOCKER_HOST"] = f"unix:///nowhere/{_canary(dice, case).strip()}"
    if dice.random() < 0.1:
        case.environ["GOOGLE_CLOUD_API_KEY"] = dice.choice([MARKER, " ", ""])
    for name in _some(dice, ROUTING, 0.3):
        case.environ[name] = dice.choice(["us-east5", "global", " "])
    case.asked = _some(dice, SECRET_NAMES + DENIED + OWNED + ROUTING, 0.4)
    case.forced = _some(dice, DENIED + OWNED, 0.1)
    dice.shuffle(case.asked)
    case.provider = dice.choice([None, None, "google-vertex", "anthropic-vertex", *KEYED])
    case.agent = dice.choice([None, *PRESETS])
    case.kubeconfig = dice.random() < 0.2
    case.attach = dice.choice(["gateway", "inside"])
    for name in _some(dice, PROJECTS, 0.2):
        case.environ[name] = PROJECT
    for option in (["--timeout", "10m"], ["--interactive"], ["--network", "net1"],
                   ["--user", "1000:1000"], ["--engine-arg", "--memory=1g"],
                   ["--mount", "/usr/share:/data:ro"], ["--engine-arg", "--read-only=true"]):
        if dice.random() < 0.3:
            case.extra += option
    if case.engine == "podman" and case.attach == "inside":
        # what it is known to work with
        case.extra = [*(each for each in case.extra if each not in ("--network", "net1")),
                      "--network", "none"]
    return case

// Mounts the page.

import "./styles/base.css";
import "./styles/shell.css";
import "./styles/home.css";
import "./styles/approvals.css";
import "./styles/session.css";
import "./styles/conversation.css";
import "./styles/terminal.css";
import "./styles/overview.css";
import { render } from "preact";
import { App } from "./app";
import { listen } from "./router";
import { applyTheme } from "./theme";

applyTheme();
listen();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);

// Mounts the page.

import "./styles/base.css";
import "./styles/shell.css";
import "./styles/home.css";
import "./styles/approvals.css";
import "./styles/session.css";
import "./styles/conversation.css";
import "./styles/terminal.css";
import "./styles/overview.css";
import "./styles/touch.css";
import "./worker";
import { render } from "preact";
import { App } from "./app";
import { identify } from "./me";
import { listen, route } from "./router";
import { applyTheme } from "./theme";

applyTheme();
listen();
// Before the first picture: request its data while the browser draws the frame.
if (route.value.name !== "pair") void identify();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);

// The saved page: what it shows is part of the file.

import { showCaptures, showTimeline, startPage } from "./attention_page.js";
import { byId } from "./dom.js";

const { captures, over_time: overTime, initial } = JSON.parse(byId("data").textContent);
startPage(initial);
if (overTime) showTimeline(captures);
else showCaptures(captures);

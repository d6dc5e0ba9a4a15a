"use strict";
// Pages that are opened from the disk may start no workers, and the theme searches in one. Here a hidden frame runs its
// script in place of the worker.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", {data}));
      this.inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => this.run(each)), Promise.resolve());
      this.ready = this.run(url);
    }
    run(url) {
      return new Promise((done, failed) => {
        const script = this.inside.document.createElement("script");
        Object.assign(script, {src: new URL(url, location.href).href, onload: done, onerror: failed});
        this.inside.document.body.append(script);
      });
    }
    postMessage(data) { this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data}))); }
    terminate() {}
  };
}

"""A client of chromedriver, as far as the tests need one. Source: W3C, WebDriver."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # The key that the standard gives to references.


def find_programs():
    """Chromium and its driver, or None."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


class Browser:
    """A headless Chromium with one window. Use as a context."""

    def __init__(self, width=1200, height=900):
        self.chromium, driver = find_programs()
        self.folder = tempfile.TemporaryDirectory()
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.base = None
        for line in self.driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                self.base = f"http://127.0.0.1:{found.group(1)}/session"
                break
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1",
                     f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}"]
        options = {"binary": self.chromium, "args": arguments}
        opened = self.send("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options,
                                                                         "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = "/" + opened["sessionId"]

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        try:
            self.send("DELETE", self.session)
        except (OSError, RuntimeError):
            pass
        self.driver.terminate()
        self.driver.wait(timeout=10)
        self.driver.stdout.close()
        for _ in range(20):  # Chromium may still be writing there.
            try:
                self.folder.cleanup()
                break
            except OSError:
                time.sleep(0.1)

    def send(self, method, path, body=None):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, page):
        self.send("POST", self.session + "/url", {"url": page.as_uri() if isinstance(page, pathlib.Path) else page})

    def run(self, script, *arguments):
        """The value that a script returns."""
        return self.send("POST", self.session + "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The value that a script hands to its last argument."""
        return self.send("POST", self.session + "/execute/async", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.send("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.send("POST", f"{self.session}/element/{self.find(selector)}/click")

    def type(self, selector, keys):
        self.send("POST", f"{self.session}/element/{self.find(selector)}/value", {"text": keys})

    def screenshot(self, selector):
        """A PNG of an element, in base64."""
        return self.send("GET", f"{self.session}/element/{self.find(selector)}/screenshot")

    def drag(self, selector, by, down=0):
        """Drags from the middle of an element to the side, or down."""
        element = {ELEMENT: self.find(selector)}
        moves = [{"type": "pointerMove", "duration": 0, "origin": element, "x": 0, "y": 0}, {"type": "pointerDown", "button": 0},
                 {"type": "pointerMove", "duration": 100, "origin": element, "x": by, "y": down}, {"type": "pointerUp", "button": 0}]
        actions = [{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}]
        self.send("POST", self.session + "/actions", {"actions": actions})

    def double_click(self, selector):
        """In the middle of an element."""
        click = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        moves = [{"type": "pointerMove", "duration": 0, "origin": {ELEMENT: self.find(selector)}, "x": 0, "y": 0}, *click, *click]
        self.send("POST", self.session + "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": moves}]})

    def press(self, key):
        """A key, wherever the focus is."""
        actions = [{"type": "key", "id": "keyboard", "actions": [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]
        self.send("POST", self.session + "/actions", {"actions": actions})

    def wheel(self, selector, by):
        """Turns the wheel over the middle of an element with Ctrl held."""
        turn = {"type": "scroll", "duration": 0, "origin": {ELEMENT: self.find(selector)}, "x": 0, "y": 0, "deltaX": 0, "deltaY": by}
        control = [{"type": "keyDown", "value": "\ue009"}, {"type": "pause"}, {"type": "keyUp", "value": "\ue009"}]
        actions = [{"type": "key", "id": "keyboard", "actions": control},
                   {"type": "wheel", "id": "wheel", "actions": [{"type": "pause"}, turn, {"type": "pause"}]}]
        self.send("POST", self.session + "/actions", {"actions": actions})

    def print(self):
        """The page as a PDF, in base64."""
        return self.send("POST", self.session + "/print", {})

    def command(self, name, **parameters):
        """A command of Chromium's own protocol."""
        return self.send("POST", self.session + "/goog/cdp/execute", {"cmd": name, "params": parameters})

    def use_scheme(self, scheme):
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def use_medium(self, medium):
        self.command("Emulation.setEmulatedMedia", media=medium)

    def messages(self):
        """What the page wrote to the console since the last call: errors and warnings."""
        found = self.send("POST", self.session + "/se/log", {"type": "browser"})
        return [entry["message"] for entry in found if entry["level"] in ("SEVERE", "WARNING")]

"""Writes template.json, what CloudFormation is given: python app.py  (or: make synth)

Needs the extra `cdk` and Node, and no network, no AWS account, no Docker. The template is the same
on every machine: sorted, without assets, account, region or version of the tools.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from aws_cdk import App, BootstraplessSynthesizer

from stack import Community

TEMPLATE = Path(__file__).with_name("template.json")


def synth() -> str:
    """The template as text."""
    with TemporaryDirectory() as folder:
        app = App(outdir=folder, analytics_reporting=False)
        # Without assets there is nothing to upload, so the account need not be bootstrapped.
        Community(app, "Community", synthesizer=BootstraplessSynthesizer())
        template = app.synth().get_stack_by_name("Community").template
    return json.dumps(template, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TEMPLATE.write_text(synth(), "utf-8")

#!/usr/bin/env python3
"""Takes what this crate uses out of Betterleaks' rules: derive.py betterleaks.toml > betterleaks.toml

Regular expressions and keywords are copied as they are. Of a rule's filter the lowest entropy and
the plain tests of the secret against expressions are kept; the rest of the language of filters,
validation over the network and the analysis of permissions are not. Rules that name no secret
(parts that are only reported together with another), and those this crate has better ones for,
are left out.
"""
import json
import re
import sys
import tomllib

# Written by hand in this crate, with the surroundings that agents' transcripts have.
OWN = {
    "generic-api-key", "generic-credential-uri", "generic-password", "generic-username",
    "curl-auth-header", "curl-auth-user", "private-key", "jwt", "jwt-base64", "pkcs12-file",
    "kubernetes-secret-yaml", "mongodb-connection-string", "hashicorp-tf-password",
    "nuget-config-password",
}
# Meant to be public.
PUBLIC = {"flutterwave-public-key", "mailgun-pub-key", "lob-pub-api-key", "finicity-client-id",
          "adobe-client-id", "asana-client-id", "bitbucket-client-id", "discord-client-id",
          "linkedin-client-id", "looker-client-id", "messagebird-client-id", "plaid-client-id",
          "sumologic-access-id", "sendbird-access-id", "new-relic-user-api-id"}
# Real keys out of public documentation: not for this repository, and no loss when they are redacted.
NO_TESTS = {"gcp-api-key"}
ENTROPY = re.compile(r'entropy\(finding\["secret"\]\) <=? ([\d.]+)')
TEST = re.compile(r'(!?)matchesAny\(finding\["secret"\], \[(.*?)\]\)', re.S)
STRING = re.compile(r'`([^`]*)`|"((?:\\.|[^"\\])*)"', re.S)


def literal(text):
    return "'''" + text + "'''" if "'''" not in text else json.dumps(text)


def strings(text):
    return [raw or json.loads('"' + quoted + '"') for raw, quoted in STRING.findall(text)]


def main():
    source = tomllib.load(open(sys.argv[1], "rb"))
    print("# Derived by derive.py from Betterleaks (MIT, see LICENSE-betterleaks). See PROVENANCE.md.")
    for rule in source["rules"]:
        name = rule["id"]
        if rule.get("skipReport") or name in OWN or name in PUBLIC or "regex" not in rule:
            continue
        rule_filter = rule.get("filter", "")
        print(f'\n[[rules]]\nid = "{re.sub(r"[.][0-9]+$", "", name)}"')
        print(f"regex = {literal(rule['regex'])}")
        print(f"keywords = {json.dumps(rule.get('keywords', []))}")
        found = ENTROPY.search(rule_filter)
        if found:
            print(f"entropy = {float(found[1])}")
        for no, tests in TEST.findall(rule_filter) if name not in NO_TESTS else []:
            if "example" in tests.lower():
                # A word excuses no drawn key: the published ones are known whole (value/placeholder.rs).
                break
            key = "requires" if no else "allows"
            print(f"{key} = [{', '.join(literal(s) for s in strings(tests))}]")
            break
        if "valueGroup" in rule:
            print(f"group = {rule['valueGroup']}")
        if "tokenRatio" in rule_filter:
            print("random = true")


main()

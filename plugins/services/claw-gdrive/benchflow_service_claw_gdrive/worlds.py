"""Two worlds: the files of a small software company, and those of a research group."""

from __future__ import annotations

from random import Random
from typing import Any

__all__ = ["lab", "office"]

_VENDORS = ("Halden Hosting", "Brightline Print", "Corvid Analytics", "Mistral Couriers", "Tern Insurance")
_SPECIES = ("kelp gull", "harbour seal", "sea otter", "puffin", "minke whale")


def _users(domain: str, *names: str) -> list[dict[str, Any]]:
    return [{"email": f"{n.split()[0].lower()}@{domain}", "name": n, "primary": at == 0} for at, n in enumerate(names)]


def office(random: Random) -> dict[str, Any]:
    """Larkspur, with a tidy finance folder, an untidy top level and one shared drive."""
    domain = "larkspur.example"
    vendors = random.sample(_VENDORS, 3)
    invoices = [
        {
            "name": f"invoice-{random.randint(1000, 9999)}-{vendor.split()[0].lower()}.txt",
            "content": f"Invoice\nVendor: {vendor}\nAmount: {random.randint(200, 4000)}.00 USD\n"
            f"Due: 2026-03-{random.randint(10, 28)}\n",
            "modified": f"2026-02-{random.randint(10, 27)}T10:00:00Z",
        }
        for vendor in vendors
    ]
    product, support = random.randint(125, 150) * 1000, random.randint(82, 95) * 1000
    budget = f"Team,2025,2026\nProduct,120000,{product}\nSupport,80000,{support}\n"
    priya, dan, grace = f"priya@{domain}", f"dan@{domain}", f"grace@{domain}"
    return {
        "users": _users(domain, "Alex Morgan", "Priya Nair", "Dan Whitfield", "Grace Okafor"),
        "labels": [
            {
                "id": "confidentiality",
                "fields": {
                    "level": {"type": "selection", "choices": ["public", "internal", "secret"]},
                    "reviewer": {"type": "user"},
                    "note": {"type": "text"},
                    "until": {"type": "dateString"},
                    "score": {"type": "integer"},
                },
            }
        ],
        "apps": [{"id": "619683526622", "name": "Larkspur Diagrams", "primaryMimeTypes": ["image/svg+xml"]}],
        "files": [
            {
                "id": "1LarkspurFinanceFolder",
                "name": "Finance",
                "files": [
                    {"name": "Invoices 2026", "files": invoices},
                    {
                        "id": "1LarkspurBudgetSheet00",
                        "name": "Budget 2026",
                        "kind": "spreadsheet",
                        "content": budget,
                        "shared": [{"email": dan, "role": "writer"}],
                        "labels": {"confidentiality": {"level": ["internal"]}},
                        "access_requests": [
                            {"email": grace, "role": "reader", "message": "I need it for the audit"},
                            {"email": "sam@halden.example", "role": "writer", "message": "Please let me in"},
                        ],
                    },
                    {
                        "name": "Old budgets",
                        "files": [{"name": "Budget 2024.csv", "content": "Team,2024\nProduct,98000\n"}],
                    },
                ],
            },
            {
                "id": "1LarkspurLaunchDoc0000",
                "name": "Spring launch plan",
                "kind": "document",
                "owner": priya,
                "starred": True,
                "content": "Spring launch plan\nOwner: Priya Nair\nTODO: add the rollback plan\n",
                "shared": [{"email": f"alex@{domain}", "role": "writer"}],
                "comments": [
                    {
                        "author": priya,
                        "content": "Who signs off the pricing page?",
                        "quoted": "Owner: Priya Nair",
                        "replies": [{"author": grace, "content": "Alex, I think"}],
                    },
                    {"author": grace, "content": "Typo in the title", "resolved": True},
                ],
            },
            {
                "name": "logo-draft.svg",
                "content": "<svg xmlns='http://www.w3.org/2000/svg'/>",
                "description": "First sketch of the new logo",
            },
            {
                "name": "logo-final.svg",
                "content": "<svg xmlns='http://www.w3.org/2000/svg' width='9'/>",
                "revisions": ["<svg/>"],
            },
            {"name": "notes.txt", "content": "Call the insurance about the move.\n", "properties": {"topic": "move"}},
            {"name": "notes (1).txt", "content": "Call the insurance about the move.\n"},
            {
                "name": "holiday photos",
                "files": [{"name": f"IMG_{random.randint(1000, 9999)}.jpg", "content": "jpeg"} for _ in range(3)],
            },
            {"name": "Old contract.pdf", "content": "%PDF-1.4", "trashed": True},
            {
                "id": "1LarkspurHandbookDoc00",
                "name": "Employee handbook",
                "kind": "document",
                "owner": dan,
                "content": "Welcome to Larkspur\n",
                "shared": [{"type": "domain", "domain": domain, "role": "reader", "discoverable": True}],
            },
            {"name": "Salaries", "kind": "spreadsheet", "owner": dan, "content": "Name,Salary\n"},
        ],
        "drives": [
            {
                "id": "0ALarkspurTeamDrive",
                "name": "Larkspur Team",
                "members": [
                    {"email": dan, "role": "organizer"},
                    {"email": f"alex@{domain}", "role": "fileOrganizer"},
                    {"email": grace, "role": "writer"},
                ],
                "files": [
                    {"name": "Brand", "files": [{"name": "colors.json", "content": '{"primary": "#5b2a86"}\n'}]},
                    {"name": "Press release", "kind": "document", "content": "Larkspur launches in spring\n"},
                ],
            },
        ],
    }


def lab(random: Random) -> dict[str, Any]:
    """A group that counts animals: raw data, drafts, a review under way."""
    domain = "shorelab.example"
    species = random.sample(_SPECIES, 3)
    hana, ben = f"hana@{domain}", f"ben@{domain}"
    counts = [
        {
            "name": f"{name.replace(' ', '-')}-2026-{month:02d}.csv",
            "content": "site,count\n"
            + "".join(f"{site},{random.randint(0, 90)}\n" for site in ("north", "pier", "island")),
            "appProperties": {"species": name, "checked": "no"},
        }
        for name in species
        for month in (1, 2)
    ]
    return {
        "users": _users(domain, "Noor Rahman", "Hana Kim", "Ben Castillo"),
        "files": [
            {
                "id": "1ShorelabRawData00000",
                "name": "Raw data",
                "files": counts,
                "shared": [{"email": hana, "role": "writer"}],
            },
            {
                "id": "1ShorelabManuscript00",
                "name": "Manuscript v3",
                "kind": "document",
                "shared": [{"email": hana, "role": "writer"}, {"email": ben, "role": "commenter"}],
                "content": f"Abundance of the {species[0]} along the shore\nAbstract\n"
                f"We counted {species[0]}s at three sites.\nMethods\nTO BE WRITTEN\n",
                "comments": [
                    {"author": ben, "content": "Please give the number of surveys.", "quoted": "three sites"},
                    {
                        "author": hana,
                        "content": "Methods are missing",
                        "replies": [{"author": ben, "content": "I can write them"}],
                    },
                ],
            },
            {"name": "Manuscript v2", "kind": "document", "content": "Abundance along the shore\n"},
            {
                "name": "Reviews",
                "owner": hana,
                "shared": [{"email": f"noor@{domain}", "role": "reader"}],
                "files": [
                    {"name": "reviewer-1.txt", "content": "The sample is small.\n"},
                    {"name": "reviewer-2.txt", "content": "Accept with minor changes.\n"},
                ],
            },
            {
                "name": "grant-proposal.md",
                "content": "# Proposal\n\nDeadline: 31 March 2026\n",
                "revisions": ["# Proposal\n"],
                "starred": True,
            },
            {
                "name": "tmp",
                "files": [{"name": "untitled.txt", "content": ""}, {"name": "untitled (2).txt", "content": "x"}],
            },
        ],
    }

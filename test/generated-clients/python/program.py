"""
Ten calls with the client that openapi-python-client generates from /openapi.json with its default settings.
generated-clients.slow.test.ts checks the types of this file with that client, and runs it.
"""

import sys

from gatehouse_client import AuthenticatedClient, Client
from gatehouse_client.api.data import count_rows, delete_rows, fetch_rows, insert_rows, run_transaction
from gatehouse_client.api.management import create_table
from gatehouse_client.api.organizations import create_organization, set_active_organization
from gatehouse_client.api.public_routes import create_public_route
from gatehouse_client.api.sessions import get_session
from gatehouse_client.api.sign_in import sign_in_email
from gatehouse_client.api.sign_up import sign_up_email
from gatehouse_client.models import (
    AuthError,
    AuthErrorCode,
    ColumnDefinition,
    ColumnReference,
    ColumnReferenceOnDelete,
    Comparison,
    CountBody,
    CreatedOrganization,
    CreateOrganizationBody,
    CreatePublicRouteBody,
    CreatePublicRouteResult,
    CreateTableBody,
    CreateTableResult,
    DeleteBody,
    FetchBody,
    GatewayError,
    GatewayErrorCode,
    InsertBody,
    Operation,
    OperationKind,
    Operator,
    Organization,
    PublicOperation,
    RateLimit,
    Row,
    RowsCounted,
    RowsRead,
    RowsWritten,
    RunTransactionBody,
    SessionAndUser,
    SetActiveOrganizationBody,
    SignedUp,
    SignInEmailBody,
    SignUpEmailBody,
    SortBy,
    SortDirection,
    TransactionDone,
)

url, api_key, admin_key = sys.argv[1:]
CLIENT = "default"
TABLE = "novels"
anonymous = Client(base_url=url)
keyed = AuthenticatedClient(base_url=url, token=api_key)


def row(**values: object) -> Row:
    made = Row()
    made.additional_properties = dict(values)
    return made


signed_up = sign_up_email.sync(
    client=anonymous,
    body=SignUpEmailBody(name="Ada", email="ada@python.example.com", password="correct horse battery"),
)
assert isinstance(signed_up, SignedUp)
assert signed_up.user.name == "Ada" and signed_up.user.image is None
wrong = sign_in_email.sync(
    client=anonymous, body=SignInEmailBody(email="ada@python.example.com", password="another")
)
assert isinstance(wrong, AuthError) and wrong.code == AuthErrorCode.INVALID_EMAIL_OR_PASSWORD, wrong

ada = AuthenticatedClient(base_url=url, token=str(signed_up.token))
session = get_session.sync(client=ada)
assert isinstance(session, SessionAndUser) and session.user.id == signed_up.user.id
organization = create_organization.sync(client=ada, body=CreateOrganizationBody(name="Novels", slug="novels"))
assert isinstance(organization, CreatedOrganization)
active = set_active_organization.sync(
    client=ada, body=SetActiveOrganizationBody(organization_id=str(organization.id))
)
assert isinstance(active, Organization) and active.slug == "novels"

columns = [
    ColumnDefinition(name="title", data_type="text", nullable=False),
    ColumnDefinition(name="year", data_type="integer"),
]
made = create_table.sync(
    client=keyed, x_service_client=CLIENT, body=CreateTableBody(table_name=TABLE, columns=columns)
)
assert isinstance(made, CreateTableResult), made
assert [column.name for column in made.data.columns] == ["id", "title", "year"]
reference = ColumnReference(table=TABLE, column="id", on_delete=ColumnReferenceOnDelete.SET_DEFAULT)
notes = create_table.sync(
    client=keyed,
    x_service_client=CLIENT,
    body=CreateTableBody(
        table_name="notes", columns=[ColumnDefinition(name="novel", data_type="bigint", references=reference)]
    ),
)
assert isinstance(notes, CreateTableResult), notes

novels = [row(title="Orlando", year=1928), row(title="Solaris", year=1972)]
inserted = insert_rows.sync(
    client=keyed, x_service_client=CLIENT, body=InsertBody(table_name=TABLE, insert_body=novels)
)
assert isinstance(inserted, RowsWritten) and inserted.affected_rows == 2

old = Comparison(column="year", operator=Operator.LT, value=1950)
fetched = fetch_rows.sync(
    client=keyed,
    x_service_client=CLIENT,
    body=FetchBody(
        table_name=TABLE,
        columns=["title"],
        conditions=[old],
        sort_by=SortBy(field="year", direction=SortDirection.DESC),
    ),
)
assert isinstance(fetched, RowsRead)
assert [found.to_dict() for found in fetched.data] == [{"title": "Orlando"}]

done = run_transaction.sync(
    client=keyed,
    x_service_client=CLIENT,
    body=RunTransactionBody(
        operations=[Operation(id="all", kind=OperationKind.FETCH, payload=FetchBody(table_name=TABLE))]
    ),
)
assert isinstance(done, TransactionDone) and len(done.results[0].data) == 2

deleted = delete_rows.sync(
    client=keyed, x_service_client=CLIENT, body=DeleteBody(table_name=TABLE, conditions=[old])
)
assert isinstance(deleted, RowsWritten) and deleted.affected_rows == 1
counted = count_rows.sync(client=keyed, x_service_client=CLIENT, body=CountBody(table_name=TABLE))
assert isinstance(counted, RowsCounted) and counted.count == 1
absent = count_rows.sync(client=keyed, x_service_client=CLIENT, body=CountBody(table_name="nothing"))
assert isinstance(absent, GatewayError) and absent.code == GatewayErrorCode.TABLE_NOT_FOUND, absent

operator = AuthenticatedClient(base_url=url, token=admin_key)
route = create_public_route.sync(
    client=operator,
    body=CreatePublicRouteBody(
        route_key="novels",
        client_name=CLIENT,
        allowed_ops=[PublicOperation.FETCH],
        table_name=TABLE,
        rate_limit=RateLimit(requests=10, window_seconds=60),
    ),
)
assert isinstance(route, CreatePublicRouteResult) and route.data.rate_limit.requests == 10, route

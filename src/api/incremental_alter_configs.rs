//! IncrementalAlterConfigs: changes single configs of topics and brokers (KIP-339).

use super::Context;
use super::alterations::{Alteration, ConfigAlteration, alter};
use super::topics::Refusal;
use crate::messages::incremental_alter_configs::{
    AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};
use crate::protocol::error_code::ErrorCode;

pub async fn handle(cx: &Context, request: Request) -> Response {
    let resources = request.resources.iter();
    let named: Vec<_> = resources.map(|r| (r.resource_type, r.resource_name.clone())).collect();
    let alterations = request.resources.into_iter().map(|resource| {
        let configs = resource.configs.into_iter();
        let config = |config: AlterableConfig| ConfigAlteration {
            name: config.name,
            operation: config.config_operation,
            value: config.value,
        };
        Alteration {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            configs: configs.map(config).collect(),
            replaces_all: false,
        }
    });
    let results = alter(cx, alterations.collect(), request.validate_only).await;
    let response = |((resource_type, resource_name), result): (_, Result<(), Refusal>)| {
        let (error_code, error_message) = match result {
            Ok(()) => (ErrorCode::None, None),
            Err(refusal) => (refusal.code, refusal.message()),
        };
        AlterConfigsResourceResponse { error_code, error_message, resource_type, resource_name }
    };
    let responses = named.into_iter().zip(results).map(response).collect();
    Response { responses, ..Response::default() }
}

//! IncrementalAlterConfigs: changes single configs of topics and brokers (KIP-339).

use super::Context;
use super::alterations::{Alteration, Altered, ConfigAlteration, alter};
use crate::messages::incremental_alter_configs::{
    AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

pub async fn handle(cx: &Context, request: Request) -> Response {
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
    let altered = alter(cx, alterations.collect(), request.validate_only).await;
    let response = |altered: Altered| AlterConfigsResourceResponse {
        error_code: altered.error_code,
        error_message: altered.error_message,
        resource_type: altered.resource_type,
        resource_name: altered.resource_name,
    };
    let responses = altered.into_iter().map(response).collect();
    Response { responses, ..Response::default() }
}

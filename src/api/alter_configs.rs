//! AlterConfigs: sets all configs of topics and brokers; what is not named is set no longer.
//!
//! Old clients use it; newer ones change single configs with IncrementalAlterConfigs (KIP-339).

use super::Context;
use super::alterations::{Alteration, Altered, ConfigAlteration, SET, alter};
use crate::messages::alter_configs::{
    AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

pub async fn handle(cx: &Context, request: Request) -> Response {
    let alterations = request.resources.into_iter().map(|resource| {
        let configs = resource.configs.into_iter();
        let config = |config: AlterableConfig| ConfigAlteration {
            name: config.name,
            operation: SET,
            value: config.value,
        };
        Alteration {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
            configs: configs.map(config).collect(),
            replaces_all: true,
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
